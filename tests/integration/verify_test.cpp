// `verify -` looks tokens up together. Each gets the answer that it gets alone.

#include <fmt/format.h>
#include <fstream>

#include "base/json.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_collector.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::verify_test {
namespace {

/// A database whose tokens have been emitted.
struct EmittedTokens : DatabaseRig {
  explicit EmittedTokens(int accounts) {
    insert_accounts(*connection, accounts);
    const auto run = mailroom({"collect", "--once", "--format", "jsonl"});
    INFO(run.output << run.errors);
    REQUIRE(run.status == 0);
    for (const auto& token : emitted_tokens(run.output))
      tokens.push_back(token.at("token").get<std::string>());
    REQUIRE(tokens.size() == static_cast<std::size_t>(accounts));
  }

  FinishedRun mailroom(std::vector<std::string> words) const {
    words.insert(words.begin(), mailroom_binary);
    return run_to_end(words, {{"MAILROOM_DATABASE_URL", database.conninfo()},
                              {"MAILROOM_SECRET_KEY", std::string(64, 'a')}});
  }

  /// Runs `verify -` with `lines` as its input.
  FinishedRun verify(const std::vector<std::string>& lines, const std::string& options = {}) const {
    const auto path = directory.path() / "tokens";
    std::ofstream file(path);
    for (const auto& line : lines)
      file << line << '\n';
    file.close();
    return run_to_end(
        {"/bin/sh", "-c", fmt::format("exec {} verify - {} <{}", mailroom_binary, options, path.string())},
        {{"MAILROOM_DATABASE_URL", database.conninfo()}, {"MAILROOM_SECRET_KEY", std::string(64, 'a')}});
  }

  TemporaryDirectory directory;
  std::vector<std::string> tokens;
};

}  // namespace

TEST_CASE("tokens that are verified together get the answers that each gets alone") {
  const EmittedTokens world(6);
  const auto& tokens = world.tokens;
  world.connection->run("UPDATE tokens SET consumed_at = extract(epoch FROM now())::bigint WHERE id = 2");
  world.connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 3");
  world.connection->run("DELETE FROM tokens WHERE id = 4");
  world.connection->run("DELETE FROM mailroom_batches WHERE ids @> 5::bigint");
  auto forged = tokens[0];
  forged[50] = forged[50] == 'A' ? 'B' : 'A';
  const std::vector<std::string> asked{tokens[5], tokens[1], forged,    tokens[2], "nonsense",
                                       tokens[3], tokens[1], tokens[0], tokens[4]};
  const auto together = world.verify(asked, "-o json");
  const auto answers = lines_of(together.output);
  REQUIRE(answers.size() == asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto alone = world.mailroom({"verify", "-o", "json", asked[i]});
    CHECK(answers[i] + "\n" == alone.output);
  }
  CHECK(together.status == 9);
  CHECK(world.verify(asked).output ==
        "usable,activation\nconsumed,activation\nforged\nwrong status,activation\nmalformed\n"
        "not found,activation\nconsumed,activation\nusable,activation\nusable,activation\n");
}

TEST_CASE("more tokens than one statement looks up keep their order") {
  const EmittedTokens world(1100);
  world.connection->run("UPDATE tokens SET consumed_at = extract(epoch FROM now())::bigint WHERE id % 7 = 0");
  auto asked = world.tokens;
  asked.insert(asked.end(), world.tokens.begin(), world.tokens.end());
  const auto answers = lines_of(world.verify(asked).output);
  REQUIRE(answers.size() == asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i)
    REQUIRE(answers[i] == ((i % 1100 + 1) % 7 == 0 ? "consumed,activation" : "usable,activation"));
}

}  // namespace mailroom::test::verify_test
