// The Message-ID of a mail is told, and an application may give it.

#include <algorithm>

#include "base/json.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/finished_run.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::message_id_test {
namespace {

struct IdRig : DeliveryRig {
  TemporaryDirectory directory;
  bool is_up = true;
  TestRelay relay{{.play = [this](const RelayMoment& moment) {
    const bool refuses = moment.step == RelayStep::rcpt && !is_up;
    return refuses ? RelayAnswer::reply("451 4.2.0 come back later") : RelayAnswer{};
  }}};

  IdRig() : DeliveryRig(0) { connection->run("SELECT mailroom_want_outcomes(true)"); }

  void ask(const std::string& to, const std::string& more = {}) {
    connection->run("SELECT mailroom_send(ARRAY['" + to + "'], subject => 's', text => 't'" + more + ")");
  }
  void ask_as(const std::string& to, const std::string& id, const std::string& more = {}) {
    ask(to, ", headers => '{\"message-id\": \"" + id + "\"}'" + more);
  }
  void send() {
    TestSender sender(database.conninfo(), relay.url(), {"--once"});
    sender.wait();
    INFO(sender.log());
  }
  std::string status(int message, const std::string& column = "message_id") {
    return value<std::string>(
        *connection,
        fmt::format(
            "SELECT coalesce(string_agg(DISTINCT coalesce({}, '-'), ' '), '') FROM mailroom_message_status({})",
            column, message));
  }
  /// What the relay took as the Message-ID of its mails, without angle brackets.
  std::vector<std::string> taken() {
    std::vector<std::string> ids;
    for (const auto& mail : relay.taken()) {
      const auto begin = mail.message.find("Message-ID: <") + 13;
      ids.push_back(mail.message.substr(begin, mail.message.find('>', begin) - begin));
    }
    return ids;
  }
  std::string run(std::vector<std::string> command) {
    command.insert(command.begin(), mailroom_binary);
    const auto done = run_to_end(command, {{"MAILROOM_DATABASE_URL", database.conninfo()},
                                           {"MAILROOM_SECRET_KEY", std::string(64, 'a')}});
    INFO(done.errors);
    CHECK(done.status == 0);
    return done.output;
  }
  /// Reads a report of an unknown user about the mail with this Message-ID. Returns the token that it is
  /// about; 0 for none.
  int bounce(const std::string& address, const std::string& id) {
    const auto report = directory.write(
        "report",
        "Return-Path: <>\r\nFrom: MAILER-DAEMON@mx.example\r\nTo: no-reply@app.example\r\nSubject: Returned mail\r\n"
        "Content-Type: multipart/report; report-type=delivery-status; boundary=B\r\n\r\n--B\r\n"
        "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\nFinal-Recipient: rfc822; " +
            address +
            "\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 User unknown\r\n\r\n--B\r\n"
            "Content-Type: text/rfc822-headers\r\n\r\nMessage-ID: <" +
            id + ">\r\n\r\n--B--\r\n");
    const auto line = parse_json(run({"bounce", report, "-o", "json"}));
    return line.at("token").is_null() ? 0 : line.at("token").get<int>();
  }
  int suppressed() { return value<int>(*connection, "SELECT count(*) FROM mailroom_suppressions"); }
};

}  // namespace

TEST_CASE("the Message-ID of a mail is told by each way that asks") {
  IdRig rig;
  rig.ask("ada@mail.example", ", cc => ARRAY['bob@mail.example']");
  CHECK(rig.status(1) == "-");
  rig.send();
  const auto ids = rig.taken();
  REQUIRE(ids.size() == 2);
  CHECK(ids[0] == ids[1]);
  CHECK(rig.status(1) == ids[0]);
  CHECK(count(rig.run({"message", "show", "1"}), ids[0]) == 1);
  CHECK(count(rig.run({"message", "show", "1", "-o", "json"}), ids[0]) == 2);
  CHECK(count(rig.run({"audit", "message:1", "-o", "json"}), ids[0]) > 0);
  rig.directory.write("told.py",
                      "import os, sys\n"
                      "for line in sys.stdin:\n"
                      "    open(sys.argv[1], 'a').write(line)\n"
                      "    os.write(3, ('ok ' + line.split(' ')[0] + '\\n').encode())\n");
  const auto log = (rig.directory.path() / "log").string();
  rig.run(
      {"outcomes", "--once", "--exec", "python3 " + (rig.directory.path() / "told.py").string() + " " + log});
  CHECK(count(read_file(log), "\"message_id\": \"" + ids[0]) == 2);
}

TEST_CASE("each attempt at a mail is on record with the same Message-ID") {
  IdRig rig;
  rig.is_up = false;
  rig.ask("ada@mail.example");
  rig.send();
  const auto first = rig.status(1);
  rig.is_up = true;
  rig.due_now();
  rig.send();
  REQUIRE(rig.taken().size() == 1);
  CHECK(rig.taken()[0] == first);
  CHECK(rig.status(1) == first);
  CHECK(value<std::string>(*rig.connection,
                           "SELECT earlier_attempts->0->>'message_id' FROM mailroom_deliveries") == first);
}

TEST_CASE("a mail leaves with the Message-ID that an application gives") {
  IdRig rig;
  rig.ask_as("ada@mail.example", "<order.17@app.example>", ", cc => ARRAY['bob@mail.example']");
  rig.ask("ada@mail.example", ", headers => '{\"In-Reply-To\": \"<order.17@app.example>\"}'");
  rig.ask_as("ada@mail.example", "<order.18@shop.example>", ", sender => 'Shop <a@SHOP.example>'");
  rig.send();
  const auto ids = rig.taken();
  CHECK(std::ranges::count(ids, "order.17@app.example") == 2);
  CHECK(std::ranges::count(ids, "order.18@shop.example") == 1);
  CHECK(rig.status(1) == "order.17@app.example");
}

TEST_CASE("a Message-ID of another domain, of mailroom's form or in no form is refused") {
  IdRig rig;
  const auto sender = GENERATE("", ", sender => 'a@app.example'");
  for (const auto* const bad : {"order.17@app.example", "<order 17@app.example>", "<@app.example>", "<a@b>",
                                "<x.y.m1.mailroom@app.example>", "<a..b@app.example>"})
    CHECK_THROWS_WITH(rig.ask_as("ada@mail.example", bad, sender), Catch::Contains("Message-ID"));
  CHECK_THROWS_WITH(rig.ask_as("ada@mail.example", "<a@mail.app.example>", ", sender => 'a@app.example'"),
                    Catch::Contains("is not of the domain of the sender, app.example"));
}

TEST_CASE("what only the sender knows it refuses, and says so") {
  IdRig rig;
  rig.ask_as("ada@mail.example", "<order.17@other.example>");
  rig.send();
  CHECK(rig.taken().empty());
  CHECK(rig.status(1, "state") == "rejected");
  CHECK(rig.status(1, "reply") ==
        "the Message-ID of the message is not of the domain of the sender, app.example");
}

TEST_CASE("a bounce is found by a given Message-ID, and suppresses nobody") {
  IdRig rig;
  rig.ask_as("ada@mail.example", "<order.17@app.example>");
  rig.ask_as("bob@mail.example", "<order.17@app.example>");
  rig.send();
  CHECK(rig.bounce("bob@mail.example", "order.17@app.example") == 2);
  CHECK(rig.status(1, "state") == "accepted");
  CHECK(rig.status(2, "state") == "bounced");
  CHECK(rig.suppressed() == 0);
  CHECK(rig.bounce("eve@mail.example", "order.17@app.example") == 0);
  CHECK(rig.bounce("bob@mail.example", "order.99@app.example") == 0);
  // One of mailroom's own still proves its mail.
  rig.ask("cid@mail.example");
  rig.send();
  CHECK(rig.bounce("cid@mail.example", rig.status(3)) == 3);
  CHECK(rig.suppressed() == 1);
}

TEST_CASE("who knows a given Message-ID closes no outcome that is unknown") {
  IdRig rig;
  rig.ask_as("ada@mail.example", "<order.17@app.example>");
  rig.send();
  rig.connection->run("UPDATE mailroom_deliveries SET state = 'unknown', accepted_at = NULL");
  rig.bounce("ada@mail.example", "order.17@app.example");
  CHECK(rig.count("unknown") == 1);
}

TEST_CASE("a copy that is forgotten has no given Message-ID") {
  IdRig rig;
  rig.ask_as("ada@mail.example", "<ada@app.example>");
  rig.send();
  rig.run({"message", "forget", "ada@mail.example", "--yes"});
  CHECK(rig.status(1) == "-");
}

}  // namespace mailroom::test::message_id_test
