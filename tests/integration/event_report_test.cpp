// Events that show whose mail they are about by the id in a header that a provider keeps, and reports that
// scripts make, by lines and by SQL.

#include <fmt/format.h>

#include "base/json.hpp"
#include "integration/bounce_rig.hpp"
#include "support/catch.hpp"

namespace mailroom::test::event_report_test {
namespace {

using Json = nlohmann::json;

struct ReportRig : BounceRig {
  ReportRig() { environment.erase("MAILROOM_SEND_BOUNCE_ADDRESS"); }

  /// What follows `before` in the last mail, to the end of the line.
  std::string last_header(const std::string& before) {
    const auto message = relay.taken().back().message;
    const auto at = message.find(before);
    if (at == std::string::npos) return {};
    return message.substr(at + before.size(), message.find('\r', at) - at - before.size());
  }
  std::string suppressed() {
    return value<std::string>(
        *connection,
        "SELECT coalesce(string_agg(address || ' ' || kind, ', ' ORDER BY address), '') FROM mailroom_suppressions");
  }
  FinishedRun read_lines(const std::string& lines) {
    return run({"bounce", "--jsonl", directory.write("lines", lines)});
  }
  int bounces() { return value<int>(*connection, "SELECT count(*) FROM mailroom_bounces"); }
};

/// The id of a copy as a header has it.
std::string id_in(const std::string& header) {
  const auto at = header.find_first_of("123456789");
  return at == std::string::npos ? std::string() : header.substr(at, header.find_first_of("\"}", at) - at);
}

}  // namespace

TEST_CASE(
    "a mail by a relay of a provider has an id in the header that the provider keeps, and its event is about that copy") {
  const std::vector<std::pair<std::string, std::string>> headers{{"postmark", "X-PM-Metadata-mailroom: "},
                                                                 {"mailgun", "X-Mailgun-Variables: "},
                                                                 {"sendgrid", "X-SMTPAPI: "},
                                                                 {"brevo", "X-Mailin-custom: "},
                                                                 {"mailjet", "X-MJ-CustomID: "},
                                                                 {"sparkpost", "X-MSYS-API: "}};
  ReportRig rig;
  for (const auto& [provider, header] : headers) {
    INFO(provider);
    const auto address = provider + "@mail.example";
    rig.environment["MAILROOM_SEND_PROVIDER"] = provider;
    rig.mail(address);
    const auto value = rig.last_header(header);
    CHECK(rig.relay.taken().back().message.starts_with(header));
    const auto id = id_in(value);
    CHECK(id.find('-') != std::string::npos);
    const Json report{{"address", address}, {"kind", "hard"}, {"token", id}};
    CHECK(rig.read_lines(plain_json(report))
              .output.ends_with("hard, user_unknown; the address is suppressed\n"));
  }
  rig.environment.erase("MAILROOM_SEND_PROVIDER");
  rig.mail("plain@mail.example");
  for (const auto& [provider, header] : headers)
    CHECK(rig.last_header(header).empty());
  // That of the sender stays, and is the only one.
  rig.environment["MAILROOM_SEND_PROVIDER"] = "mailjet";
  rig.environment["MAILROOM_SEND_HEADERS"] = "x-mj-customid: mine";
  rig.mail("own@mail.example");
  CHECK(rig.last_header("x-mj-customid: ") == "mine");
  CHECK(rig.last_header("X-MJ-CustomID: ").empty());
}

TEST_CASE("an event of a copy says nothing of the others, whoever knows their Message-ID") {
  ReportRig rig;
  rig.environment["MAILROOM_SEND_PROVIDER"] = "mailjet";
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['ada@mail.example', 'bob@mail.example'], subject => 'x', text => 'y')");
  rig.run({"send", "--once"});
  const auto taken = rig.relay.taken();
  REQUIRE(taken.size() == 2);
  const auto id = id_in(taken.front().message.substr(0, taken.front().message.find('\r')).substr(15));
  const auto message_id = rig.last_header("Message-ID: ");
  const auto event = [&](const std::string& address, const Json& more) {
    Json report{{"address", address}, {"kind", "hard"}};
    report.update(more);
    return plain_json(report) + "\n";
  };
  const auto other = taken.front().to == "ada@mail.example" ? "bob@mail.example" : "ada@mail.example";
  rig.read_lines(event(other, {{"token", id}}) + event("eve@mail.example", {{"token", id}}) +
                 event("ada@mail.example", {{"message_id", message_id}}) +
                 event("bob@mail.example", {{"message_id", message_id}}));
  CHECK(rig.bounces() == 4);
  CHECK(rig.suppressed().empty());
  rig.read_lines(event(taken.front().to, {{"token", id}}));
  CHECK(rig.suppressed() == taken.front().to + " bounce");
}

TEST_CASE(
    "lines are reports and events, each recorded once; a line that is none is refused by name, when those before it are recorded") {
  ReportRig rig;
  rig.mail("ada@mail.example");
  rig.mail("bob@mail.example");
  const std::string ada =
      R"({"address": "ada@mail.example", "kind": "soft", "reason": "452 4.2.2 mailbox full", "token": 1})";
  const std::string bob =
      R"({"RecordType": "SpamComplaint", "Type": "SpamComplaint", "ID": 7, "MessageID": "m", "Email": "bob@mail.example"})";
  auto run = rig.read_lines(ada + "\n\n" + ada + "\r\n" + bob + "\n");
  CHECK(run.status == 0);
  CHECK(
      run.output ==
      "token 1 of queue mailroom, ada@mail.example: soft, undetermined: 452 4.2.2 mailbox full\n"
      "token 1 of queue mailroom, ada@mail.example: soft, undetermined: 452 4.2.2 mailbox full; read before\n"
      "of no mail that is known, to bob@mail.example: complaint, feedback\n");
  run = rig.read_lines(R"({"address": "bob@mail.example", "kind": "unsubscribed", "token": 2})"
                       "\n"
                       R"({"address": "bob@mail.example", "kind": "bounced", "token": 2})"
                       "\n"
                       R"({"address": "bob@mail.example", "kind": "delivered", "token": 2})");
  CHECK(run.status == 1);
  CHECK(run.errors.find("lines, line 2: kind 'bounced' is none of hard, soft,") != std::string::npos);
  CHECK(rig.bounces() == 3);
  CHECK(rig.suppressed() == "bob@mail.example unsubscribed");
  CHECK(rig.state_of("bob@mail.example").starts_with("accepted"));
  CHECK(rig.run({"bounce", "--jsonl", "--maildir", rig.directory.path()}).status == 2);
}

TEST_CASE("a report by SQL is the same as by a line, and an array is recorded whole or not at all") {
  ReportRig rig;
  rig.mail("ada@mail.example");
  rig.mail("bob@mail.example");
  const auto report = [&](const std::string& json) {
    return value<std::string>(
        *rig.connection,
        "SELECT coalesce(string_agg(concat_ws(' ', is_new, token, address, suppressed), ', '), '') FROM mailroom_report('" +
            json + "')");
  };
  const std::string hard =
      R"({"address": "ada@mail.example", "kind": "hard", "reason": "550 5.1.1 no", "token": 1, "at": 1795000000})";
  CHECK(report(hard) == "t 1 ada@mail.example t");
  CHECK(report(hard) == "f 1 ada@mail.example f");
  CHECK(rig.read_lines(hard).output.ends_with("; read before\n"));
  CHECK(value<std::string>(
            *rig.connection,
            "SELECT kind || ' ' || reason || ' ' || reply || ' ' || source FROM mailroom_bounces") ==
        "hard user_unknown 550 5.1.1 no sql");
  const auto id = rig.last_header("Message-ID: ");
  CHECK(report(R"({"address": "Bob@mail.example", "kind": "complaint", "message_id": ")" + id + "\"}") ==
        "t 2 bob@mail.example t");
  CHECK(
      report(
          R"([{"address": "eve@mail.example", "kind": "hard", "token": 1}, {"address": "ada@mail.example", "kind": "hard", "token": 99}])") ==
      "t eve@mail.example f, t ada@mail.example f");
  CHECK(rig.suppressed() == "ada@mail.example bounce, bob@mail.example complaint");
  CHECK(rig.bounces() == 4);
  CHECK_THROWS(report(
      R"([{"address": "ada@mail.example", "kind": "soft", "token": 1}, {"address": "ada@mail.example", "kind": "soft"}])"));
  CHECK(rig.bounces() == 4);
}

}  // namespace mailroom::test::event_report_test
