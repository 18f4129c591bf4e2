// What each feature does with a mail that its program has made: the bytes that came in go out.

#include <filesystem>

#include "base/json.hpp"
#include "integration/raw_rig.hpp"
#include "messages/forgetting.hpp"
#include "support/prune_rig.hpp"

namespace mailroom::test::raw_mail_test {
namespace {

const std::string mail_in_utf8 =
    "From: shop@shop.example\r\nTo: ada@mail.example\r\nSubject: plain\r\n\r\nÖl\r\n";

bool mails_of(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each recipient of a raw mail gets its bytes, and has an outcome of his own") {
  RawRig rig;
  rig.environment.erase("MAILROOM_SEND_BOUNCE_ADDRESS");
  // The settings that other mails have touch nothing.
  rig.environment["MAILROOM_SEND_HEADERS"] = "X-Shop: 1";
  rig.environment["MAILROOM_SEND_REPLY_TO"] = "help@app.example";
  const auto id = rig.submit(raw_mail, "ada@mail.example\\nhidden@mail.example");
  const auto taken = rig.send();
  REQUIRE(taken.size() == 2);
  for (const auto& mail : taken) {
    CHECK(mail.from == "<shop@shop.example>");
    CHECK(mail.message == raw_mail);
  }
  CHECK(taken[0].to == "ada@mail.example");
  CHECK(taken[1].to == "hidden@mail.example");
  const auto outcomes = rig.outcomes(id);
  CHECK(mails_of(outcomes, "ada@mail.example accepted: "));
  CHECK(mails_of(outcomes, "hidden@mail.example accepted: "));
  CHECK(value<std::string>(*rig.connection,
                           fmt::format("SELECT DISTINCT message_id FROM mailroom_message_status({})", id)) ==
        "17@shop.example");
}

TEST_CASE(
    "raw mails of all sizes go out as they are, also beside other messages and in batches of any size") {
  for (const auto* limit : {"1", "7", "1000"}) {
    RawRig rig;
    std::vector<std::string> mails;
    for (int i = 0; i < 40; ++i) {
      const std::size_t size = i % 10 == 0 ? 2'500'000 : i % 3 == 0 ? 40'000 : 50;
      std::string body;
      while (body.size() < size)
        body += std::string(static_cast<std::size_t>(i % 7) + 60, static_cast<char>('a' + i % 26)) + "\r\n";
      mails.push_back(fmt::format("From: a@shop.example\r\nX-Number: {}\r\n\r\n{}", i, body));
      rig.submit(mails.back(), i % 4 == 0 ? "ada@mail.example\\nbo@mail.example" : "ada@mail.example");
      if (i % 5 == 0)
        rig.connection->run("SELECT mailroom_send(ARRAY['cy@mail.example'], subject => 'x', text => 'y')");
    }
    rig.environment["MAILROOM_SEND_BATCH_LIMIT"] = limit;
    std::map<std::string, int> taken;
    for (const auto& mail : rig.send())
      if (mail.to != "cy@mail.example") ++taken[mail.message];
    INFO(limit);
    CHECK(taken.size() == mails.size());
    for (std::size_t i = 0; i < mails.size(); ++i)
      CHECK(taken[mails[i]] == (i % 4 == 0 ? 2 : 1));
  }
}

TEST_CASE("a mail to 1,000 recipients has 1,000 outcomes, and one that is refused is one of them") {
  RawRig rig;
  std::string recipients;
  for (int i = 1; i <= 1000; ++i)
    recipients += fmt::format("{}user{}@mail.example", i == 1 ? "" : "\\n", i);
  const auto id = rig.submit(raw_mail, recipients);
  TestRelay relay({.play = [](const RelayMoment& moment) {
    return moment.step == RelayStep::rcpt && moment.recipient == "user500@mail.example"
               ? RelayAnswer::reply("550 5.1.1 no such user")
               : RelayAnswer{};
  }});
  CHECK(rig.send_by(relay).size() == 999);
  CHECK(value<std::string>(
            *rig.connection,
            fmt::format("SELECT string_agg(state || ' ' || n, ', ' ORDER BY state) FROM (SELECT state, "
                        "count(*) AS n FROM mailroom_message_status({}) GROUP BY 1) s",
                        id)) == "accepted 999, rejected 1");
}

TEST_CASE("the envelope sender is that of the bounce address, and the empty one stays empty") {
  RawRig rig;
  rig.submit(raw_mail);
  rig.submit(raw_mail, "bo@mail.example", "");
  rig.connection->run("INSERT INTO mailroom_messages (recipients, raw) VALUES ('{cy@mail.example}', " +
                      bytea_literal(raw_mail) + ")");
  rig.submit(raw_mail, "di@mail.example", "list@shop.example",
             R"(, p_options => ARRAY['{"keep_return_path": true}'::jsonb])");
  const auto taken = rig.send();
  REQUIRE(taken.size() == 4);
  CHECK(taken[0].from.starts_with("<bounce+"));
  CHECK(taken[1].from == "<>");
  CHECK(taken[2].from.starts_with("<bounce+"));
  CHECK(taken[3].from == "<list@shop.example>");
  CHECK(refusal(*rig.connection, R"(SELECT mailroom_send('{a@mail.example}', subject => 's', text => 't', )"
                                 R"(options => '{"keep_return_path": true}'))")
            .starts_with("23514 "));
  RawRig plain;
  plain.environment.erase("MAILROOM_SEND_BOUNCE_ADDRESS");
  plain.connection->run("INSERT INTO mailroom_messages (recipients, raw) VALUES ('{cy@mail.example}', " +
                        bytea_literal(raw_mail) + ")");
  const auto with_own = plain.send();
  REQUIRE(with_own.size() == 1);
  CHECK(with_own[0].from == "<no-reply@app.example>");
}

TEST_CASE("a bounce of a raw mail ends as its outcome, and the next mail to the address is suppressed") {
  RawRig rig;
  const auto id = rig.submit(raw_mail);
  const auto taken = rig.send();
  REQUIRE(taken.size() == 1);
  const auto from = taken[0].from.substr(1, taken[0].from.find('>') - 1);
  rig.read(
      "From: MAILER-DAEMON@mail.example\r\nTo: " + from +
      "\r\nSubject: Undelivered\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report; "
      "report-type=delivery-status; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nno such user\r\n--b\r\n"
      "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mail.example\r\n\r\nFinal-Recipient: rfc822; "
      "ada@mail.example\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 no such "
      "user\r\n\r\n--b--\r\n");
  CHECK(rig.outcomes(id).starts_with("ada@mail.example bounced"));
  const auto next = rig.submit(raw_mail);
  CHECK(rig.send().size() == 1);
  CHECK(rig.outcomes(next) == "ada@mail.example cancelled: the address is suppressed: bounce user_unknown");
}

TEST_CASE("a mail with 8-bit letters needs 8BITMIME, and one with a header in UTF-8 SMTPUTF8") {
  RawRig rig;
  rig.environment.erase("MAILROOM_SEND_BOUNCE_ADDRESS");
  const std::string in_header = "From: shop@shop.example\r\nSubject: Öl\r\n\r\nx\r\n";
  const std::string in_latin = "From: shop@shop.example\r\nSubject: \xd6l\r\n\r\nx\r\n";
  TestRelay able({.offers_smtputf8 = true});
  for (const auto& mail : {raw_mail, mail_in_utf8, in_header, in_latin})
    rig.submit(mail);
  const auto taken = rig.send_by(able);
  REQUIRE(taken.size() == 4);
  CHECK(taken[0].from == "<shop@shop.example>");
  CHECK(taken[1].from == "<shop@shop.example> BODY=8BITMIME");
  CHECK(taken[1].message == mail_in_utf8);
  CHECK(taken[2].from == "<shop@shop.example> BODY=8BITMIME SMTPUTF8");
  CHECK(taken[2].message == in_header);
  CHECK(taken[3].from == "<shop@shop.example> BODY=8BITMIME");
  CHECK(taken[3].message == in_latin);

  TestRelay old({.offers_8bitmime = false});
  const auto plain = rig.submit(raw_mail);
  const auto body = rig.submit(mail_in_utf8);
  const auto header = rig.submit(in_header);
  CHECK(rig.send_by(old).size() == 1);
  CHECK(mails_of(rig.outcomes(plain), "accepted"));
  CHECK(rig.outcomes(body) ==
        "ada@mail.example rejected: the relay does not offer 8BITMIME, which the mail needs");
  CHECK(rig.outcomes(header) ==
        "ada@mail.example rejected: the relay does not offer SMTPUTF8, which the mail needs");
}

TEST_CASE("an address in UTF-8 needs SMTPUTF8, that of the sender too") {
  RawRig rig;
  rig.environment.erase("MAILROOM_SEND_BOUNCE_ADDRESS");
  const auto to = rig.submit(raw_mail, "ädä@mail.example");
  const auto from = rig.submit(raw_mail, "bo@mail.example", "shöp@shop.example");
  TestRelay able({.offers_smtputf8 = true});
  auto taken = rig.send_by(able);
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].from == "<shop@shop.example> SMTPUTF8");
  CHECK(taken[1].from == "<shöp@shop.example> SMTPUTF8");
  CHECK(mails_of(rig.outcomes(to), "accepted"));
  const auto again = rig.submit(raw_mail, "bo@mail.example", "shöp@shop.example");
  CHECK(rig.send().empty());
  CHECK(rig.outcomes(again) ==
        "bo@mail.example rejected: the relay does not offer SMTPUTF8, which the mail needs");
  CHECK(mails_of(rig.outcomes(from), "accepted"));
}

TEST_CASE("what a relay says of the sender of one raw mail does not keep those of others") {
  RawRig rig;
  rig.environment.erase("MAILROOM_SEND_BOUNCE_ADDRESS");
  TestRelay relay({.play = [&](const RelayMoment& moment) {
    return moment.step == RelayStep::rcpt && moment.recipient == "eve@mail.example"
               ? RelayAnswer::reply(
                     "553 5.7.1 <eve@other.example>: Sender address rejected: not owned by user")
               : RelayAnswer{};
  }});
  const auto wrong =
      rig.submit("From: eve@other.example\r\n\r\nx\r\n", "eve@mail.example", "eve@other.example");
  std::vector<std::int64_t> right;
  for (int i = 0; i < 20; ++i)
    right.push_back(rig.submit(raw_mail));
  CHECK(rig.send_by(relay).size() == 20);
  for (const auto id : right)
    CHECK(mails_of(rig.outcomes(id), "accepted"));
  CHECK_FALSE(mails_of(rig.outcomes(wrong), "accepted"));
}

TEST_CASE("a redirected raw mail says in front whose it was, and send.allow cancels it") {
  RawRig rig;
  rig.environment["MAILROOM_SEND_REDIRECT_TO"] = "dev@app.example";
  rig.submit(raw_mail);
  const auto taken = rig.send();
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].to == "dev@app.example");
  CHECK(taken[0].message == "X-Mailroom-Recipient: ada@mail.example\r\n" + raw_mail);
  rig.environment.erase("MAILROOM_SEND_REDIRECT_TO");
  rig.environment["MAILROOM_SEND_ALLOW"] = "@app.example";
  const auto id = rig.submit(raw_mail);
  CHECK(rig.send().size() == 1);
  CHECK(rig.outcomes(id) == "ada@mail.example cancelled: send.allow does not have the address");
}

TEST_CASE("a raw mail takes the lane and the bounce address of its profile, and not its sender") {
  RawRig rig;
  const TestRelay other;
  rig.environment["MAILROOM_CONFIG"] = rig.directory.write(
      "mailroom.yaml", "profiles:\n  news:\n    from: news@news.example\n    relay: " + other.url() +
                           "\n    bounce_address: news+{id}@news.example\n");
  rig.submit(raw_mail, "ada@mail.example", "shop@shop.example", ", p_profiles => ARRAY['news']");
  const auto waits =
      rig.submit(raw_mail, "ada@mail.example", "shop@shop.example", ", p_profiles => ARRAY['later']");
  rig.send();
  const auto taken = other.taken();
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].from.starts_with("<news+"));
  CHECK(taken[0].message == raw_mail);
  CHECK(mails_of(rig.outcomes(waits), "deferred: there is no profile later"));
}

TEST_CASE("a raw mail that waits for its time leaves then, and one that is cancelled does not") {
  RawRig rig;
  const auto later = rig.submit(raw_mail, "ada@mail.example", "shop@shop.example",
                                ", p_send_after => ARRAY[now() + interval '1 hour']");
  const auto called_off = rig.submit(raw_mail, "bo@mail.example");
  CHECK(rig.outcomes(later).starts_with("ada@mail.example scheduled"));
  CHECK(value<std::string>(*rig.connection, fmt::format("SELECT mailroom_cancel({})", called_off)) ==
        "cancelled");
  CHECK(rig.send().empty());
  rig.connection->run(fmt::format("UPDATE mailroom_messages SET send_after = now() WHERE id = {}", later));
  const auto taken = rig.send();
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].message == raw_mail);
}

TEST_CASE("message show tells of a raw mail, and --raw writes its bytes") {
  RawRig rig;
  const auto id = std::to_string(rig.submit(mail_in_utf8, "ada@mail.example", ""));
  const auto coded = std::to_string(rig.submit(raw_mail));
  const auto text = rig.run({"message", "show", id}).output;
  CHECK(mails_of(text, fmt::format("raw mail of {} bytes", mail_in_utf8.size())));
  CHECK(mails_of(text, "<>"));
  const auto json = parse_json(rig.run({"message", "show", "-o", "json", coded}).output);
  CHECK(json["raw_size"] == raw_mail.size());
  CHECK(json["return_path"] == "shop@shop.example");
  CHECK(json["subject"] == "Grüße");
  CHECK(rig.run({"message", "show", "--raw", id}).output == mail_in_utf8);
  CHECK(rig.run({"message", "show", "--raw", id, coded}).status == 2);
  const auto list = rig.run({"message", "list"}).output;
  CHECK(mails_of(list, "'Grüße'"));
  CHECK(mails_of(list, "'plain'"));
  rig.connection->run("SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'x', text => 'y')");
  CHECK(rig.run({"message", "show", "--raw", "3"}).status != 0);
}

TEST_CASE("a capture keeps the bytes of a raw mail") {
  RawRig rig;
  rig.submit(raw_mail);
  const auto directory = rig.directory.path() / "captured";
  const auto run = rig.run({"send", "--once", "--capture", directory});
  INFO(run.errors);
  REQUIRE(run.status == 0);
  std::vector<std::string> kept;
  for (const auto& file : std::filesystem::directory_iterator(directory / "new"))
    kept.push_back(read_file(file.path()));
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].ends_with(raw_mail));
}

TEST_CASE("a line has the size of a raw mail, and its envelope sender") {
  RawRig rig;
  rig.submit(raw_mail);
  rig.submit(raw_mail, "bo@mail.example", "");
  const auto run = rig.run({"collect", "--once", "--format", "jsonl"});
  INFO(run.errors);
  const auto tokens = parse_json(run.output);
  const auto text = plain_json(tokens);
  CHECK(mails_of(text, fmt::format("\"raw\":{{\"size\":{}}}", raw_mail.size())));
  CHECK(mails_of(text, "\"return_path\":\"shop@shop.example\""));
  CHECK(mails_of(text, "\"return_path\":\"\""));
  CHECK_FALSE(mails_of(text, "a dot"));
}

TEST_CASE("a raw mail larger than send.max_size is rejected without being read") {
  RawRig rig;
  rig.environment["MAILROOM_SEND_MAX_SIZE"] = "64kB";
  const auto id = rig.submit("From: a@shop.example\r\n\r\n" + std::string(70'000, 'x') + "\r\n");
  CHECK(rig.send().empty());
  CHECK(mails_of(rig.outcomes(id), "rejected: the mail has 70,026 bytes"));
}

TEST_CASE("a line end other than CRLF far within a raw mail is rejected by the sender") {
  RawRig rig;
  std::string mail = "From: a@shop.example\r\n\r\n";
  while (mail.size() < 20'000)
    mail += "a line\r\n";
  const auto id = rig.submit(mail + ".\nQUIT\n");
  CHECK(rig.send().empty());
  CHECK(rig.outcomes(id) ==
        "ada@mail.example rejected: the message has a NUL, or a line end other than CRLF");
}

TEST_CASE("reconcile accounts for raw mails") {
  RawRig rig;
  rig.submit(raw_mail, "ada@mail.example\\nbo@mail.example");
  rig.send();
  const auto run = rig.run({"reconcile"});
  INFO(run.output << run.errors);
  CHECK(run.status == 0);
}

TEST_CASE("prune removes a raw mail with the content of its message") {
  RawRig rig;
  const auto id = rig.submit(raw_mail);
  rig.send();
  rig.connection->run(
      "UPDATE mailroom_messages SET created_at = created_at - interval '40 days'; "
      "UPDATE mailroom_deliveries SET first_at = first_at - interval '40 days', last_at = last_at - interval '40 days'");
  const auto before = "SELECT octet_length(raw) IS NULL FROM mailroom_messages";
  CHECK_FALSE(value<bool>(*rig.connection, before));
  CHECK(prune::Pruner(*rig.database.connect(), {.records = month, .contents = std::chrono::hours(24 * 7)}, 10)
            .remove(author, always)
            .contents == 1);
  CHECK(value<bool>(*rig.connection, before));
  CHECK(rig.run({"message", "show", "--raw", std::to_string(id)}).status != 0);
}

TEST_CASE("forgetting removes the raw mail of a person, and of others who have it once it has ended") {
  RawRig rig;
  const auto own = rig.submit(raw_mail, "ada@mail.example", "ada@mail.example");
  const auto shared = rig.submit(raw_mail, "ada@mail.example\\nbo@mail.example");
  // SQL does not see her in base64, nor in an encoded word.
  const auto naming = rig.submit(
      "From: shop@shop.example\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n"
      "Rm9yIGFkYUBtYWlsLmV4YW1wbGUgb25seQ==\r\n",
      "bo@mail.example");
  const auto coded =
      rig.submit("From: shop@shop.example\r\nSubject: =?utf-8?b?YWRhQG1haWwuZXhhbXBsZQ==?=\r\n\r\nx\r\n",
                 "bo@mail.example");
  const auto longer =
      rig.submit("From: shop@shop.example\r\n\r\nto xada@mail.example\r\n", "bo@mail.example");
  const auto waits = rig.submit(raw_mail, "bo@mail.example", "shop@shop.example",
                                ", p_send_after => ARRAY[now() + interval '1 day']");
  const auto has_raw = [&](std::int64_t id) {
    return value<bool>(*rig.connection,
                       fmt::format("SELECT raw IS NOT NULL FROM mailroom_messages WHERE id = {}", id));
  };
  rig.send();
  const messages::ForgetRequest request{.addresses = {"Ada@mail.example"}, .reference = {}};
  const auto plan = messages::plan_forgetting(*rig.connection, request);
  CHECK(plan.messages == 2);
  CHECK(plan.named == 2);
  CHECK(plan.kept == 1);
  const auto done = messages::forget(*rig.connection, request, {.actor = "ann@host", .reason = "asked"});
  CHECK(done.messages == 2);
  CHECK(done.named == 2);
  CHECK(done.kept == 1);
  for (const auto id : {own, shared, naming, coded})
    CHECK_FALSE(has_raw(id));
  CHECK(has_raw(longer));
  CHECK(has_raw(waits));
  CHECK(value<bool>(*rig.connection,
                    fmt::format("SELECT return_path IS NULL FROM mailroom_messages WHERE id = {}", own)));
}

}  // namespace mailroom::test::raw_mail_test
