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
  // Where mails leave without ids, the Message-ID of the mail is one.
  rig.environment.erase("MAILROOM_SEND_BOUNCE_ADDRESS");
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

TEST_CASE("an id proves one copy, and a report suppresses only the address that was mailed") {
  BounceRig rig;
  const auto suppressed = [&] {
    return value<std::string>(
        *rig.connection,
        "SELECT coalesce(string_agg(address, ' ' ORDER BY address), '') FROM mailroom_suppressions");
  };
  const auto id_in = [](const std::string& mail) {
    const auto at = mail.find("Message-ID: <") + 13;
    return mail.substr(at, mail.find('>', at) - at);
  };
  const auto returned = [](const std::string& id, const std::string& path = {}) {
    return "--b\r\nContent-Type: text/rfc822-headers\r\n\r\n" +
           (path.empty() ? path : "Return-Path: <" + path + ">\r\n") + "Message-ID: <" + id + ">\r\n\r\n";
  };
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['eve@mail.example'], cc => ARRAY['victim@mail.example'], subject => 'x', text => 'y')");
  REQUIRE(rig.run({"send", "--once"}).status == 0);
  const auto copies = rig.relay.taken();
  REQUIRE(copies.size() == 2);
  const auto& of_eve = copies[0].to.find("eve") != std::string::npos ? copies[0] : copies[1];
  const auto& of_victim = &of_eve == &copies[0] ? copies[1] : copies[0];
  // What Eve has: the Message-ID of all copies, and the id of her own.
  const auto id = id_in(of_eve.message);
  CHECK(rig.read(report_to("bounce@app.example", "victim@mail.example", "5.1.1", gone, returned(id)))
            .starts_with("of no mail"));
  rig.read(report_to(of_eve.from, "victim@mail.example", "5.1.1", gone, returned(id)));
  rig.read(report_to("bounce@app.example", "victim@mail.example", "5.1.1", gone, returned(id, of_eve.from)));
  CHECK(suppressed().empty());
  // Somebody behind an alias has left, and another one has got it.
  const auto field =
      "Original-Recipient: rfc822;victim@mail.example\r\nFinal-Recipient: rfc822;carol@inner.example\r\n"
      "Action: failed\r\nStatus: 5.1.1\r\n\r\n";
  const auto with = [&](const std::string& fields) {
    auto report = report_to(of_victim.from, "x@y.example", "5.1.1", gone);
    const auto at = report.find("Final-Recipient");
    return report.replace(at, report.find("--b--") - at, fields);
  };
  rig.read(with(field));
  rig.read(
      with("Final-Recipient: rfc822;victim@mail.example\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n"
           "Final-Recipient: rfc822;bob@inner.example\r\nAction: relayed\r\nStatus: 2.0.0\r\n\r\n"));
  CHECK(suppressed().empty());
  // The id of the copy in the mail that came back, as a feedback report has it, is a proof.
  rig.read(
      report_to("bounce@app.example", "VICTIM@mail.example", "5.1.1", gone, returned(id, of_victim.from)));
  CHECK(suppressed() == "victim@mail.example");
  // Another database with the same key and the same numbers.
  BounceRig other;
  other.mail("ada@mail.example");
  rig.mail("dan@mail.example");
  const auto theirs = other.relay.taken().back().from;
  rig.connection->run("TRUNCATE mailroom_suppressions");
  CHECK(rig.read(report_to(theirs, "eve@mail.example", "5.1.1", gone)).starts_with("of no mail"));
  CHECK(suppressed().empty());
  // Without ids a Message-ID proves the mail of a message with one copy only.
  rig.environment.erase("MAILROOM_SEND_BOUNCE_ADDRESS");
  rig.read(report_to("bounce@app.example", "victim@mail.example", "5.1.1", gone, returned(id) + "\r\n"));
  CHECK(suppressed().empty());
  rig.mail("erin@mail.example");
  rig.read(report_to("no-reply@app.example", "erin@mail.example", "5.1.1", gone,
                     returned(id_in(rig.relay.taken().back().message))));
  CHECK(suppressed() == "erin@mail.example");
}

TEST_CASE(
    "so many soft bounces of an address suppress it, and a delivery ends the count and the suppression") {
  BounceRig rig;
  rig.environment["MAILROOM_BOUNCE_SUPPRESS_AFTER"] = "3/14d";
  const auto full = [&](const std::string& to) {
    const auto from = rig.mail(to);
    if (from.empty()) return false;
    rig.read(report_to(from, to, "5.2.2", "552 5.2.2 mailbox full"));
    rig.read(report_to(from, to, "5.2.2", "552 5.2.2 mailbox is full"));
    return true;
  };
  const auto delivered = [&](const std::string& to) {
    auto report = report_to(rig.mail(to), to, "2.0.0", "250 ok");
    rig.read(report.replace(report.find("failed"), 6, "delivered"));
  };
  const auto reasons = [&] {
    return value<std::string>(
        *rig.connection,
        "SELECT coalesce(string_agg(kind || ' ' || reason, ','), '') FROM mailroom_suppressions");
  };
  CHECK(full("ada@mail.example"));
  CHECK(full("ada@mail.example"));
  delivered("ada@mail.example");
  CHECK(full("ada@mail.example"));
  CHECK(full("ada@mail.example"));
  CHECK(reasons().empty());
  const auto last = rig.mail("ada@mail.example");
  CHECK(full("ada@mail.example"));
  CHECK(reasons() == "bounce repeated_soft");
  CHECK_FALSE(full("ada@mail.example"));
  // Of a mail that was on its way.
  auto report = report_to(last, "ada@mail.example", "2.0.0", "250 ok");
  rig.read(report.replace(report.find("failed"), 6, "delivered"));
  CHECK(reasons().empty());
  CHECK_FALSE(rig.mail("ada@mail.example").empty());
  // What is about the sender says nothing of an address.
  for (int i = 0; i < 4; ++i) {
    const auto from = rig.mail("bob@mail.example");
    rig.read(report_to(from, "bob@mail.example", "5.7.1", "550 5.7.1 blocked using zen.spamhaus.org"));
  }
  CHECK(reasons().empty());
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
