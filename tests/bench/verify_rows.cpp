// How many tokens per second `mailroom verify -` checks.

#include <algorithm>
#include <fstream>

#include "bench/collected.hpp"
#include "bench/databases.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {
namespace {

const std::string database_name = "verified";

/// The backlog's activation tokens as a collector writes them. Afterwards the database has records of their
/// batches.
std::vector<std::string> activation_tokens(Stage& stage) {
  stage.create_database(database_name, plain_backlog(stage).database);
  place_cursor(*stage.connect(database_name), 0);
  auto setup = stage.mailroom(database_name, {"collect", "--once", "-q", "--batch-limit", "1000"});
  setup.output = stage.path("collected0");
  Process(setup).wait();
  std::vector<std::string> tokens;
  std::ifstream lines(setup.output);
  for (std::string line; std::getline(lines, line);) {
    read_line(line, [&](const CollectedToken& token) {
      if (token.action == "1") tokens.emplace_back(token.token);
    });
  }
  return tokens;
}

void write_tokens(const std::string& path, const std::vector<std::string>& tokens, std::int64_t count) {
  std::ofstream file(path);
  for (std::int64_t i = 0; i < count; ++i)
    file << tokens[static_cast<std::size_t>(i) % tokens.size()] << '\n';
}

std::int64_t offline_count(Stage& stage) {
  return stage.scaled(1'000'000);
}

std::int64_t database_count(Stage& stage) {
  return stage.scaled(200'000);
}

void make_files(Stage& stage) {
  stage.once("files of tokens", [&] {
    const auto tokens = activation_tokens(stage);
    write_tokens(stage.path("offline"), tokens, offline_count(stage));
    write_tokens(stage.path("database"), tokens, database_count(stage));
  });
}

Figures measure_verify(Stage& stage, const std::string& input, std::int64_t count,
                       std::vector<std::string> options) {
  options.insert(options.begin(), {"verify", "-"});
  auto setup = stage.mailroom(database_name, std::move(options));
  setup.input = stage.path(input);
  setup.output = stage.path("verified");
  const auto cost = Process(setup).wait();
  if (count_lines(setup.output) != count) throw std::runtime_error("not every token was judged");
  return {{.value = static_cast<double>(count) / cost.seconds, .unit = "tokens/s"}};
}

}  // namespace

std::vector<Row> verify_rows() {
  return {
      {.name = "verify/offline",
       .meaning = "verify --offline - of a million activation tokens",
       .prepare = make_files,
       .measure =
           [](Stage& stage) {
             return measure_verify(stage, "offline", offline_count(stage), {"--offline"});
           }},
      {.name = "verify/database",
       .meaning = "verify - of 200,000 activation tokens, which are looked up",
       .prepare = make_files,
       .measure = [](Stage& stage) { return measure_verify(stage, "database", database_count(stage), {}); }}};
}

}  // namespace mailroom::bench
