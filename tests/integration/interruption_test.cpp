// A command that is interrupted leaves no statement behind in the server.

#include <csignal>
#include <sys/wait.h>

#include "support/catch.hpp"
#include "support/operator_rig.hpp"

namespace mailroom::test::interruption_test {
namespace {

struct Interrupted {
  std::vector<std::string> words;
  int signal;
};

/// The statements of mailroom that run in the database of `connection`.
int running(db::Connection& connection) {
  return value<int>(connection,
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                    "application_name LIKE 'mailroom %' AND state = 'active' AND wait_event_type = 'Lock'");
}

}  // namespace

TEST_CASE("what the server runs for a command ends with the command") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto locking = rig.database.connect();
  locking->run("BEGIN");
  locking->run("LOCK TABLE tokens, mailroom_messages, mailroom_suppressions, mailroom_operations");
  const auto [words, number] = GENERATE(
      Interrupted{{"message", "list"}, SIGINT},
      Interrupted{{"message", "cancel", "--action", "message"}, SIGTERM},
      Interrupted{{"audit", "token:1"}, SIGINT}, Interrupted{{"audit", "--outcome", "accepted"}, SIGHUP},
      Interrupted{{"reconcile"}, SIGTERM}, Interrupted{{"status"}, SIGINT}, Interrupted{{"tail"}, SIGINT},
      Interrupted{{"revoke", "--all", "--yes"}, SIGINT}, Interrupted{{"resend", "--since", "1h"}, SIGINT},
      Interrupted{{"suppression", "list"}, SIGINT}, Interrupted{{"prune", "--dry-run"}, SIGTERM});
  CAPTURE(words, number);
  auto command = words;
  command.insert(command.begin(), mailroom_binary);
  const TemporaryDirectory directory;
  const std::string errors = directory.path() / "stderr";
  Subprocess process(command,
                     {{"MAILROOM_DATABASE_URL", rig.database.conninfo()}, {"MAILROOM_SECRET_KEY", test_key}},
                     directory.path() / "stdout", errors);
  REQUIRE(eventually([&] { return running(connection) > 0 || process.has_ended(); }));
  CAPTURE(read_file(errors));
  REQUIRE_FALSE(process.has_ended());
  process.signal(number);
  // A command with a StopSignal of its own ends at once by the second.
  if (!eventually([&] { return process.has_ended(); }, std::chrono::seconds(5))) process.signal(number);
  process.wait();
  CHECK(eventually([&] { return running(connection) == 0; }, std::chrono::seconds(10)));
}

}  // namespace mailroom::test::interruption_test
