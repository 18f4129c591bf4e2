#include "support/test_collector.hpp"

#include <csignal>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "crypto/key_ring.hpp"
#include "support/build_paths.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test {
namespace {

std::vector<std::string> collect_command(std::vector<std::string> options) {
  std::vector<std::string> words{mailroom_binary, "collect"};
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

std::map<std::string, std::string> with_defaults(const std::string& conninfo,
                                                 std::map<std::string, std::string> environment) {
  environment.emplace("MAILROOM_DATABASE_URL", conninfo);
  environment.emplace("MAILROOM_SECRET_KEY", test_key);
  return environment;
}

}  // namespace

const char* const test_key = "cafebabecafebabecafebabecafebabecafebabecafebabecafebabecafebabe";

TestCollector::TestCollector(const TestDatabase& database, std::vector<std::string> options,
                             const std::map<std::string, std::string>& environment)
    : TestCollector(database.conninfo(), std::move(options), environment) {}

TestCollector::TestCollector(const std::string& conninfo, std::vector<std::string> options,
                             const std::map<std::string, std::string>& environment,
                             const std::string& stdout_path)
    : process_(collect_command(std::move(options)), with_defaults(conninfo, environment),
               stdout_path.empty() ? output_path() : stdout_path, stderr_path()) {}

int TestCollector::stop() {
  process_.signal(SIGTERM);
  return process_.wait();
}

std::vector<std::string> TestCollector::lines() const {
  return lines_of(output());
}

bool TestCollector::connected(int times) const {
  return eventually([&] { return count(log(), " connected\n") >= times; });
}

std::vector<nlohmann::json> emitted_tokens(const std::string& output) {
  std::vector<nlohmann::json> tokens;
  std::size_t start = 0;
  for (auto end = output.find('\n'); end != std::string::npos; end = output.find('\n', start)) {
    const auto batch = nlohmann::json::parse(output.substr(start, end - start));
    for (const auto& token : batch.at("tokens"))
      tokens.push_back(token);
    start = end + 1;
  }
  return tokens;
}

std::map<std::int64_t, int> emitted_ids(const std::string& output) {
  std::map<std::int64_t, int> ids;
  Verifier verifier(KeyRing{Key::from_hex(test_key, "the test"), {}});
  for (const auto& token : emitted_tokens(output)) {
    const auto decoded = decode_token(token.at("token").get<std::string>());
    const auto code = token.at("code").get<std::string>();
    if (!decoded || !verifier.verify(*decoded, code, false))
      throw std::runtime_error("a token does not verify");
    ++ids[token.at("id").get<std::int64_t>()];
  }
  return ids;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

}  // namespace mailroom::test
