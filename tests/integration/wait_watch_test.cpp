// A command that waits for another session says for whom.

#include "db/wait_watch.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <thread>

#include "schema/migrator.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::wait_watch_test {
namespace {

/// A command in the background.
struct Waiting {
  TemporaryDirectory directory;
  Subprocess process;

  Waiting(const TestDatabase& database, std::vector<std::string> words)
      : process(with_program(std::move(words)),
                {{"MAILROOM_DATABASE_URL", database.conninfo()}, {"MAILROOM_SECRET_KEY", test_key}},
                directory.path() / "stdout", directory.path() / "stderr") {}

  static std::vector<std::string> with_program(std::vector<std::string> words) {
    words.insert(words.begin(), mailroom_binary);
    return words;
  }

  bool says(const std::string& text) const {
    return eventually([&] { return read_file(directory.path() / "stderr").find(text) != std::string::npos; });
  }
};

std::string waits_for(const db::Connection& holder) {
  return fmt::format("waiting for pid {} (mailroom report ", holder.backend_pid());
}

}  // namespace

TEST_CASE("an index that waits for an old transaction says for whose, and is built when it ends") {
  TestDatabase database;
  OperatorRig rig(database);
  REQUIRE(rig.mailroom({"migrate", "goto", "2", "--yes"}).status == 0);
  const auto holder = database.connect("mailroom report");
  holder->run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  holder->run("SELECT 1");
  Waiting migrate(database, {"migrate"});
  CHECK(migrate.says(waits_for(*holder)));
  holder->run("COMMIT");
  CHECK(migrate.process.wait() == 0);
}

TEST_CASE("operators' commands say for whom they wait") {
  TestDatabase database;
  const auto holder = database.connect("mailroom report");
  insert_accounts(*holder, 1);
  holder->run("BEGIN");
  holder->run("SELECT id FROM accounts FOR UPDATE");
  holder->run("SELECT pg_advisory_xact_lock(mailroom_lock_class('queue'), hashtext('mailroom'))");
  const std::vector<std::vector<std::string>> commands{
      {"suspend", "1"},
      {"queue", "pause", "mailroom"},
      {"queue", "set", "mailroom", "--priority", "3", "--yes"},
      {"rewind-cursor", "--to-end", "--yes"}};
  for (const auto& words : commands) {
    CAPTURE(words.front());
    Waiting command(database, words);
    CHECK(command.says(waits_for(*holder)));
  }
  holder->run("COMMIT");
}

TEST_CASE("a collector that waits for tokens is hardly woken to see whether a statement takes long") {
  TestDatabase database;
  TestCollector collector(database, {});
  REQUIRE(eventually([&] { return collector.log().find("connected") != std::string::npos; }));
  // How often all threads but the first, which polls, have been woken.
  const auto wakes = [tasks = fmt::format("/proc/{}/task", collector.process().pid()),
                      first = std::to_string(collector.process().pid())] {
    int found = 0;
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      if (task.path().filename() == first) continue;
      const auto status = read_file(task.path() / "status");
      const auto at = status.find("\nvoluntary_ctxt_switches:");
      found += std::stoi(status.substr(status.find_first_of("0123456789", at)));
    }
    return found;
  };
  const int before = wakes();
  std::this_thread::sleep_for(std::chrono::seconds(5));
  CHECK(wakes() - before <= 4);
}

TEST_CASE("migrate --wait says which migration it waits for") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto holder = database.connect("mailroom report");
  schema::take_migration_lock(*holder, {});
  Waiting migrate(database, {"migrate", "--wait", "1m"});
  CHECK(migrate.says(fmt::format("waiting for another migration, of pid {} ", holder->backend_pid())));
}

}  // namespace mailroom::test::wait_watch_test
