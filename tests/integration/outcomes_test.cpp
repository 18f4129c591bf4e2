// An application is told what became of its mails: by a program that acknowledges each outcome, and by a
// notification.

#include <csignal>
#include <map>
#include <set>
#include <sstream>

#include "base/json.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/documented_roles.hpp"
#include "support/finished_run.hpp"
#include "support/test_consumer.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::outcomes_test {
namespace {

/// Answers each line as its first argument says, and appends it to the file of the second.
constexpr auto program = R"(import os, sys
answers = os.fdopen(3, 'w', buffering=1)
for line in sys.stdin:
    batch, attempt, text = line.split(' ', 2)
    with open(sys.argv[2], 'a') as log:
        log.write(text)
    answers.write({'ok': f'ok {batch}\n', 'retry': f'fail {batch} * retry later\n', 'reject': f'fail {batch} * reject never\n'}[sys.argv[1]])
)";

struct OutcomesRig : DeliveryRig {
  TemporaryDirectory directory;
  TestRelay relay{{.play = [](const RelayMoment& moment) {
    const bool is_gone = moment.step == RelayStep::rcpt && moment.recipient.find("gone") != std::string::npos;
    return is_gone ? RelayAnswer::reply("550 5.1.1 no such user") : RelayAnswer{};
  }}};

  OutcomesRig() : DeliveryRig(0) { directory.write("program.py", program); }

  std::vector<std::string> words(const std::string& answer) const {
    return {"--exec", fmt::format("python3 {} {} {}", (directory.path() / "program.py").string(), answer,
                                  (directory.path() / "log").string())};
  }
  FinishedRun hand_over(const std::string& answer, std::vector<std::string> more = {"--once"}) {
    std::vector<std::string> command{mailroom_binary, "outcomes"};
    const auto exec = words(answer);
    command.insert(command.end(), exec.begin(), exec.end());
    command.insert(command.end(), more.begin(), more.end());
    return run_to_end(command, {{"MAILROOM_DATABASE_URL", database.conninfo()}});
  }
  void ask(const std::string& to, const std::string& more = {}) {
    connection->run("SELECT mailroom_send(ARRAY['" + to + "'], subject => 'Hello', text => 'Hello'" + more +
                    ")");
  }
  void send() {
    TestSender sender(database.conninfo(), relay.url(), {"--once"});
    sender.wait();
    INFO(sender.log());
  }
  /// What the program has read.
  std::vector<nlohmann::json> told() const {
    std::vector<nlohmann::json> lines;
    std::istringstream text(read_file(directory.path() / "log"));
    for (std::string line; std::getline(text, line);)
      lines.push_back(parse_json(line));
    return lines;
  }
  int kept() { return value<int>(*connection, "SELECT count(*) FROM mailroom_outcomes"); }
};

}  // namespace

TEST_CASE(
    "every outcome is handed over from the first start on, with what the application knows its mail by") {
  OutcomesRig rig;
  rig.ask("early@mail.example");
  rig.send();
  CHECK(rig.kept() == 0);
  CHECK(rig.hand_over("ok").status == 0);
  rig.ask("ada@mail.example", ", reference => 'order:17', idempotency_key => 'key-17'");
  rig.ask("gone@mail.example");
  rig.ask("late@mail.example", ", expires_at => now() + interval '1 second'");
  rig.connection->run("UPDATE tokens SET expires_at = 1 WHERE message = 4");
  rig.send();
  CHECK(rig.kept() == 3);
  CHECK(rig.hand_over("ok").status == 0);
  CHECK(rig.kept() == 0);
  std::map<std::string, nlohmann::json> told;
  for (const auto& line : rig.told())
    told[line.at("recipient")] = line;
  REQUIRE(told.size() == 3);
  const auto& ada = told.at("ada@mail.example");
  CHECK(ada.at("state") == "accepted");
  CHECK(ada.at("reference") == "order:17");
  CHECK(ada.at("idempotency_key") == "key-17");
  CHECK(ada.at("message") == 2);
  CHECK(ada.at("code") == 250);
  CHECK(told.at("gone@mail.example").at("state") == "rejected");
  CHECK(told.at("gone@mail.example").at("code") == 550);
  CHECK(told.at("late@mail.example").at("state") == "expired");
}

TEST_CASE("an outcome that is put off comes again, and one that is refused for good does not") {
  OutcomesRig rig;
  rig.hand_over("ok");
  rig.ask("ada@mail.example");
  rig.send();
  CHECK(rig.hand_over("retry").status == 0);
  CHECK(rig.kept() == 1);
  CHECK(rig.hand_over("ok").status == 0);
  CHECK(rig.told().size() == 1);
  CHECK(value<bool>(*rig.connection,
                    "SELECT not_before > clock_timestamp() AND attempts = 1 FROM mailroom_outcomes"));
  rig.connection->run("UPDATE mailroom_outcomes SET not_before = now()");
  const auto refused = rig.hand_over("reject");
  CHECK(refused.status == 0);
  CHECK(count(refused.errors, "an outcome was refused for good, and is dropped") == 1);
  CHECK(rig.told().size() == 2);
  CHECK(rig.kept() == 0);
}

TEST_CASE("what kills the command, or its program, loses no outcome") {
  OutcomesRig rig;
  rig.hand_over("ok");
  auto words = rig.words("ok");
  words.insert(words.begin(), "outcomes");
  std::set<std::string> asked;
  for (int round = 0; round < 5; ++round) {
    const TestConsumer reader(words, rig.database.conninfo(), {});
    for (int i = 0; i < 20; ++i) {
      asked.insert(fmt::format("r{}i{}@mail.example", round, i));
      rig.ask(fmt::format("r{}i{}@mail.example", round, i));
    }
    rig.send();
  }
  CHECK(rig.hand_over("ok").status == 0);
  std::set<std::string> told;
  for (const auto& line : rig.told())
    told.insert(line.at("recipient"));
  CHECK(told == asked);
  CHECK(rig.kept() == 0);
}

TEST_CASE("one process hands outcomes over, and a second one takes over when it ends") {
  OutcomesRig rig;
  auto words = rig.words("ok");
  words.insert(words.begin(), "outcomes");
  auto first =
      std::make_unique<TestConsumer>(words, rig.database.conninfo(), std::map<std::string, std::string>{});
  REQUIRE(first->connected());
  CHECK(rig.hand_over("ok").status == 6);
  TestConsumer second(words, rig.database.conninfo(), {});
  CHECK(eventually([&] { return count(second.log(), "takes over when that ends") == 1; }));
  CHECK(first->stop() == 0);
  CHECK(second.connected());
  rig.ask("ada@mail.example");
  rig.send();
  CHECK(eventually([&] { return rig.kept() == 0 && rig.told().size() == 1; }));
  CHECK(second.stop() == 0);
}

TEST_CASE("a message that wants it notifies of each of its outcomes, and others do not") {
  OutcomesRig rig;
  rig.connection->run("LISTEN mailroom_outcome");
  rig.ask("ada@mail.example", ", options => '{\"notify\": true}'");
  rig.ask("bob@mail.example");
  rig.connection->run(
      "INSERT INTO mailroom_messages (recipients, subject, text, options) VALUES ('{gone@mail.example}', 'a', 'a', '{\"notify\": true}')");
  rig.ask("late@mail.example", ", options => '{\"notify\": true}'");
  rig.connection->run("UPDATE tokens SET expires_at = 1 WHERE message = 4");
  auto listener = rig.database.connect();
  listener->listen("mailroom_outcome", db::Connection::Senders::all);
  rig.send();
  std::set<std::string> heard;
  CHECK(eventually([&] {
    for (const auto& payload : listener->take_payloads())
      heard.insert(payload);
    return heard.size() == 3;
  }));
  CHECK(heard == std::set<std::string>{"1", "3", "4"});
}

TEST_CASE("the role of the document hands outcomes over, and sees no secret and no content") {
  OutcomesRig rig;
  const DocumentedRoles roles(rig.database);
  std::vector<std::string> command{mailroom_binary, "outcomes", "--once"};
  for (const auto& word : rig.words("ok"))
    command.push_back(word);
  const std::map<std::string, std::string> environment{{"MAILROOM_DATABASE_URL", roles.conninfo("teller")}};
  const auto first = run_to_end(command, environment);
  INFO(first.errors);
  CHECK(first.status == 0);
  rig.ask("ada@mail.example");
  rig.send();
  CHECK(run_to_end(command, environment).status == 0);
  CHECK(rig.told().size() == 1);
  rig.ask("bob@mail.example", ", send_after => now() + interval '1 h', reference => 'order:2'");
  rig.connection->run("SELECT mailroom_cancel(2)");
  CHECK(run_to_end(command, environment).status == 0);
  REQUIRE(rig.told().size() == 2);
  const auto line = rig.told()[1];
  CHECK(line.at("state") == "cancelled");
  CHECK(line.at("message") == 2);
  CHECK(line.at("action") == "message");
  CHECK(line.at("recipient") == "bob@mail.example");
  CHECK(line.at("reference") == "order:2");
  CHECK_FALSE(line.contains("token"));
  CHECK_FALSE(line.contains("queue"));
  db::Connection own(roles.conninfo("teller"), "test");
  for (const auto* hidden : {"SELECT secret FROM tokens", "SELECT text FROM mailroom_messages"})
    CHECK_THROWS_AS(own.run(hidden), Error);
}

TEST_CASE("--off ends the keeping, and a command line without a program is refused") {
  OutcomesRig rig;
  rig.hand_over("ok");
  rig.ask("ada@mail.example");
  rig.send();
  const auto off = run_to_end({mailroom_binary, "outcomes", "--off", "--yes"},
                              {{"MAILROOM_DATABASE_URL", rig.database.conninfo()}});
  CHECK(off.output == "done: 1 outcome removed\n");
  rig.ask("bob@mail.example");
  rig.send();
  CHECK(rig.kept() == 0);
  const auto nothing =
      run_to_end({mailroom_binary, "outcomes"},
                 {{"MAILROOM_DATABASE_URL", rig.database.conninfo()}, {"MAILROOM_SINK_EXEC", "cat"}});
  CHECK(nothing.status == 2);
}

}  // namespace mailroom::test::outcomes_test
