// What comes back of mails: whose mail it was, what is recorded, and which address gets no more.

#include <csignal>

#include "integration/bounce_rig.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::bounced_mail_test {
namespace {

/// A notification of RFC 3464. `more`: further parts.
std::string report_to(const std::string& to, const std::string& recipient, const std::string& status,
                      const std::string& words, const std::string& more = {}) {
  return "From: MAILER-DAEMON@mx.example\r\nTo: " + to +
         "\r\nSubject: Undelivered Mail Returned to Sender\r\nMIME-Version: 1.0\r\n"
         "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n"
         "--b\r\nContent-Type: text/plain\r\n\r\nsorry\r\n"
         "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\n"
         "Final-Recipient: rfc822; " +
         recipient + "\r\nAction: failed\r\nStatus: " + status + "\r\nDiagnostic-Code: smtp; " + words +
         "\r\n\r\n" + more + "--b--\r\n";
}

constexpr auto gone = "550 5.1.1 <x>: Recipient address rejected: User unknown in virtual mailbox table";

}  // namespace

TEST_CASE("a hard bounce ends the mails to its address, and audit says why; security mail still goes to it") {
  BounceRig rig;
  const auto from = rig.mail("ada@mail.example");
  CHECK(from.find("bounce+1-") != std::string::npos);
  CHECK(rig.read(report_to(from, "ada@mail.example", "5.1.1", gone))
            .starts_with("token 1 of queue mailroom, ada@mail.example: hard, user_unknown: 5.1.1 550 5.1.1"));
  CHECK(rig.read(report_to(from, "ada@mail.example", "5.1.1", gone)).find("read before") !=
        std::string::npos);
  CHECK(rig.mail("Ada <ADA@mail.example>").empty());
  CHECK(rig.state_of("Ada <ADA@mail.example>") == "cancelled the address is suppressed: bounce user_unknown");
  const auto said = rig.run({"audit", "ada@mail.example"}).output;
  CAPTURE(said);
  CHECK(said.find("; then bounced ") != std::string::npos);
  CHECK(said.find("mailroom suppression remove 'ada@mail.example'") != std::string::npos);
  rig.connection->run("UPDATE mailroom_actions SET security = true WHERE action = 'message'");
  CHECK_FALSE(rig.mail("ada@mail.example").empty());
  rig.connection->run("UPDATE mailroom_actions SET security = false WHERE action = 'message'");
  CHECK(rig.run({"suppression", "remove", "ada@mail.example"}).status == 0);
  CHECK_FALSE(rig.mail("ada@mail.example").empty());
}

TEST_CASE("a full mailbox suppresses nothing, and a complaint does whatever the report says of the address") {
  BounceRig rig;
  const auto from = rig.mail("ada@mail.example");
  rig.read(report_to(from, "ada@mail.example", "5.2.2", "552 5.2.2 mailbox full"));
  CHECK_FALSE(rig.mail("ada@mail.example").empty());
  CHECK(value<std::string>(
            *rig.connection,
            "SELECT string_agg(kind || ' ' || reason, ', ') FROM mailroom_bounced_addresses()") ==
        "soft mailbox_full");
  const auto again = rig.mail("ada@mail.example");
  rig.read(
      "From: staff@isp.example\r\nTo: " + again +
      "\r\nSubject: complaint\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=feedback-report; "
      "boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nspam\r\n--b\r\nContent-Type: "
      "message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nUser-Agent: x/1\r\nVersion: 1\r\n\r\n--b\r\n"
      "Content-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\ny\r\n--b--\r\n");
  CHECK(value<std::string>(*rig.connection, "SELECT kind FROM mailroom_suppressions") == "complaint");
}

TEST_CASE("a bounce with an id that somebody made up, or with the Message-ID of no mail, suppresses nobody") {
  BounceRig rig;
  const auto from = rig.mail("ada@mail.example");
  const auto returned = [](const std::string& id) {
    return "--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <" + id + ">\r\n\r\n";
  };
  const auto own = rig.relay.taken().back().message;
  const auto at = own.find("Message-ID: <") + 13;
  const auto id = own.substr(at, own.find('>', at) - at);
  for (const auto& report : {report_to("bounce+1-aaaaaaaaaa@app.example", "ada@mail.example", "5.1.1", gone),
                             report_to("bounce+1@app.example", "ada@mail.example", "5.1.1", gone),
                             report_to("x@app.example", "ada@mail.example", "5.1.1", gone,
                                       returned("mailroom.0123456789abcdef.m1.mailroom@app.example"))}) {
    CHECK(rig.read(report).starts_with("of no mail that is known, to ada@mail.example: hard"));
    CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_suppressions") == 0);
  }
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_bounces WHERE token IS NULL AND report IS NOT NULL") == 3);
  CHECK(rig.read(report_to("x@app.example", "ada@mail.example", "5.1.1", gone, returned(id)))
            .starts_with("token 1 "));
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_suppressions") == 1);
}

TEST_CASE(
    "a mail to an id of ours is on record with its words, whatever it is, and an mbox has each of its mails") {
  BounceRig rig;
  const auto from = rig.mail("ada@mail.example");
  const auto said = rig.read("From: ada@mail.example\r\nTo: " + from +
                             "\r\nSubject: Wer sind Sie?\r\n\r\nKein Anschluss hier.\r\n");
  CHECK(
      said ==
      "token 1 of queue mailroom, ada@mail.example: unread, undetermined: Wer sind Sie?: Kein Anschluss hier.\n");
  CHECK(rig.read("From: ada@mail.example\nTo: x@app.example\nSubject: Hello\n\nHi\n")
            .find("neither a bounce") != std::string::npos);
  std::string mbox;
  for (const auto* const to : {"bob@mail.example", "carol@mail.example", "dan@mail.example"})
    mbox += "From MAILER-DAEMON Thu Apr 29 23:34:45 2026\n" +
            report_to(
                rig.mail(to), to, "5.1.1", gone,
                // The mail that is sent back may begin with such a line too.
                "--b\nContent-Type: message/rfc822\n\nFrom app Thu Apr 29 23:34:45 2026\nSubject: x\n\ny\n") +
            "\n";
  rig.read(mbox);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_suppressions") == 3);
}

TEST_CASE("what came back of a mail closes an outcome that was unknown, and the application is told") {
  BounceRig rig;
  const auto from = rig.mail("ada@mail.example");
  rig.connection->run(
      "UPDATE mailroom_deliveries SET state = 'unknown', accepted_at = NULL; SELECT mailroom_want_outcomes(true)");
  rig.read(report_to(from, "ada@mail.example", "5.1.1", gone));
  CHECK(rig.state_of("ada@mail.example").starts_with("accepted"));
  CHECK(value<std::string>(*rig.connection,
                           "SELECT string_agg(state, ' ' ORDER BY id) FROM mailroom_outcomes") ==
        "accepted bounced");
}

TEST_CASE("a reader of a maildir that is killed again and again judges each report once") {
  BounceRig rig;
  const auto from = rig.mail("ada@mail.example");
  const auto judged = [&] { return value<int>(*rig.connection, "SELECT count(*) FROM mailroom_bounces"); };
  int reports = 0;
  int cut_off = 0;
  // A transaction judges 500 reports, whose files are moved after it.
  for (int kills = 0; kills < 20 && cut_off < 5; ++kills) {
    for (const int more = reports + 600; reports < more; ++reports)
      rig.directory.write(
          "new/" + std::to_string(10'000 + reports),
          report_to(from, "ada@mail.example", "5.2.2", "552 5.2.2 mailbox full " + std::to_string(reports)));
    const auto before = judged();
    Subprocess reader({mailroom_binary, "bounce", "--maildir", rig.directory.path().string()},
                      rig.environment, rig.directory.path() / "stdout", rig.directory.path() / "stderr");
    REQUIRE(eventually([&] { return judged() > before; }));
    reader.signal(SIGKILL);
    reader.wait();
    cut_off += judged() < reports ? 1 : 0;
  }
  REQUIRE(cut_off == 5);
  CHECK(rig.run({"bounce", "--maildir", rig.directory.path().string(), "--once"}).status == 0);
  CHECK(judged() == reports);
  CHECK(std::filesystem::is_empty(rig.directory.path() / "new"));
  CHECK(std::distance(std::filesystem::directory_iterator(rig.directory.path() / "cur"), {}) == reports);
}

}  // namespace mailroom::test::bounced_mail_test
