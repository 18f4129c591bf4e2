// What is on record of mails that were handed over: the hash of their bytes, the files of their templates,
// and whether a mail that is made again is the same.

#include <filesystem>

#include "base/encoded_text.hpp"
#include "base/json.hpp"
#include "crypto/digest.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/finished_run.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::evidence_test {
namespace {

using Variables = std::map<std::string, std::string>;

struct EvidenceRig : DeliveryRig {
  explicit EvidenceRig(int accounts = 0) : DeliveryRig(accounts) {
    write("receipt.subject", "Order {{order}}");
    write("receipt.txt", "Thank you.");
    write("receipt.de.txt", "Danke.");
  }

  void write(const std::string& file, const std::string& text) const {
    directory.write("templates/" + file, text + "\n");
  }
  Variables variables() const {
    return {{"MAILROOM_SEND_TEMPLATES", (directory.path() / "templates").string()}};
  }
  void send(const TestRelay& relay, Variables others = {}) const {
    auto all = variables();
    all.merge(others);
    TestSender sender(database.conninfo(), relay.url(), {"--once"}, all);
    CHECK(sender.wait() == 0);
  }
  FinishedRun mailroom(std::vector<std::string> words) const {
    words.insert(words.begin(), mailroom_binary);
    auto all = variables();
    all.merge(Variables{{"MAILROOM_DATABASE_URL", database.conninfo()},
                        {"MAILROOM_SECRET_KEY", test_key},
                        {"MAILROOM_SEND_FROM", "Example <no-reply@app.example>"},
                        {"MAILROOM_SEND_LINK", "https://app.example/{action}?token={token}"}});
    return run_to_end(words, all);
  }
  void ask(const std::string& arguments) const { connection->run("SELECT mailroom_send(" + arguments + ")"); }
  std::string recorded(const std::string& column, int token) const {
    return value<std::string>(*connection,
                              "SELECT coalesce(" + column +
                                  ", '') FROM mailroom_deliveries WHERE token = " + std::to_string(token));
  }

  TemporaryDirectory directory{};
};

std::string hash_of(const TakenMail& mail) {
  return hex_text(crypto::sha256({mail.message}));
}

constexpr const char* hash_column = "encode(content_hash, 'hex')";

}  // namespace

TEST_CASE(
    "the hash on record is that of the bytes that the relay took, and the files are those of the mail") {
  const EvidenceRig rig;
  rig.ask("ARRAY['ada@x.example'], template => 'receipt', data => '{\"order\": 17}', locale => 'de-AT'");
  rig.ask("ARRAY['bob@x.example'], subject => 'Grüße', text => E'.\\nx'");
  rig.ask("ARRAY['eve@x.example'], template => 'receipt', data => '{\"order\": 18}'");
  const TestRelay relay({.play = [](const RelayMoment& moment) {
    if (moment.step != RelayStep::rcpt || moment.recipient != "eve@x.example") return RelayAnswer{};
    return RelayAnswer::reply("550 5.1.1 no such user");
  }});
  rig.send(relay);
  for (const auto& mail : relay.taken()) {
    const int token = mail.to == "ada@x.example" ? 1 : 2;
    CHECK(rig.recorded(hash_column, token) == hash_of(mail));
  }
  CHECK(relay.taken().size() == 2);
  CHECK(rig.recorded("templates", 1) == "receipt.subject,receipt.de.txt");
  CHECK(rig.recorded("templates", 2).empty());
  // What nobody took has no hash, and still says what it was made of.
  CHECK(rig.recorded(hash_column, 3).empty());
  CHECK(rig.recorded("templates", 3) == "receipt.subject,receipt.txt");
}

TEST_CASE("without send.evidence neither hash nor files are recorded") {
  const EvidenceRig rig;
  rig.ask("ARRAY['ada@x.example'], template => 'receipt', data => '{\"order\": 17}'");
  const TestRelay relay;
  rig.send(relay, {{"MAILROOM_SEND_EVIDENCE", "false"}});
  CHECK(relay.taken().size() == 1);
  CHECK(rig.recorded(hash_column, 1).empty());
  CHECK(rig.recorded("templates", 1).empty());
  const auto run = rig.mailroom({"message", "show", "1", "--rendered"});
  CHECK(run.status == 0);
  CHECK(run.errors.find("no hash of the mail is on record") != std::string::npos);
}

TEST_CASE("a mail that is made again is the one that was handed over until its template changes") {
  const EvidenceRig rig;
  rig.ask("ARRAY['ada@x.example'], template => 'receipt', data => '{\"order\": 17}', locale => 'de'");
  const TestRelay relay;
  rig.send(relay);
  REQUIRE(relay.taken().size() == 1);
  const auto same = rig.mailroom({"message", "show", "1", "--rendered"});
  CAPTURE(same.errors);
  CHECK(same.status == 0);
  CHECK(same.output == relay.taken()[0].message);
  CHECK(same.errors.find("byte for byte") != std::string::npos);
  rig.write("receipt.de.txt", "Vielen Dank.");
  const auto changed = rig.mailroom({"message", "show", "1", "--rendered"});
  CHECK(changed.status == 1);
  CHECK(changed.errors.find("differs from the one that was handed over: a template") != std::string::npos);
  std::filesystem::remove(rig.directory.path() / "templates/receipt.de.txt");
  const auto gone = rig.mailroom({"message", "show", "1", "--rendered"});
  CHECK(gone.errors.find("it was made of receipt.subject,receipt.de.txt, and is made of "
                         "receipt.subject,receipt.txt now") != std::string::npos);
  rig.connection->run("UPDATE mailroom_messages SET data = NULL, erased_at = now()");
  const auto erased = rig.mailroom({"message", "show", "1", "--rendered"});
  CHECK(erased.status == 8);
  CHECK(erased.errors.find("the content of its message was removed at") != std::string::npos);
}

TEST_CASE("a mail that was sent again keeps the hash of the first one beside its own") {
  const EvidenceRig rig;
  rig.ask("ARRAY['ada@x.example'], subject => 'Hello', text => 'x'");
  const TestRelay relay;
  rig.send(relay);
  rig.connection->run("UPDATE tokens SET created_at = created_at - 60");
  CHECK(rig.mailroom({"--yes", "resend", "message:1"}).status == 0);
  rig.send(relay);
  REQUIRE(relay.taken().size() == 2);
  CHECK(hash_of(relay.taken()[0]) != hash_of(relay.taken()[1]));
  CHECK(rig.recorded(hash_column, 1) == hash_of(relay.taken()[1]));
  CHECK(rig.recorded("earlier_attempts->0->>'content_hash'", 1) == hash_of(relay.taken()[0]));
  CHECK(rig.mailroom({"message", "show", "1", "--rendered"}).output == relay.taken()[1].message);
}

TEST_CASE("a raw mail and one with a link are made again, and the link is shown to nobody") {
  const EvidenceRig rig;
  rig.write("magic_link.subject", "Sign in");
  rig.write("magic_link.txt", "{{link}}");
  auto& connection = *rig.connection;
  connection.run("SELECT mailroom_create_action('magic_link', path => '/magic', lifetime => '1 hour')");
  rig.ask("ARRAY['ada@x.example'], action => 'magic_link', template => 'magic_link'");
  connection.run(
      "SELECT mailroom_submit(ARRAY['shop@x.example'], ARRAY['bob@x.example'], ARRAY[E'From: "
      "shop@x.example\\\\015\\\\012Subject: \\\\374\\\\015\\\\012\\\\015\\\\012.\\\\015\\\\012'::bytea])");
  const TestRelay relay;
  rig.send(relay);
  const auto taken = relay.taken();
  REQUIRE(taken.size() == 2);
  const std::size_t place = taken[0].to == "ada@x.example" ? 0 : 1;
  const auto& linked = taken[place];
  const auto& raw = taken[1 - place];
  const auto shown = rig.mailroom({"message", "show", "1", "--rendered"});
  CAPTURE(shown.errors);
  CHECK(shown.status == 0);
  CHECK(shown.errors.find("byte for byte") != std::string::npos);
  CHECK(shown.errors.find("its token and code are not shown") != std::string::npos);
  REQUIRE_FALSE(token_of(linked).empty());
  CHECK(shown.output.find("xxxxxxxxxxxxxxxx") != std::string::npos);
  CHECK(shown.output.find(token_of(linked).substr(0, 12)) == std::string::npos);
  CHECK(rig.recorded(hash_column, 1) == hash_of(linked));
  CHECK(rig.recorded(hash_column, 2) == hash_of(raw));
  CHECK(rig.mailroom({"message", "show", "2", "--rendered"}).output == raw.message);
}

TEST_CASE("the record of a letter is JSON, or a page in which everything is text") {
  const EvidenceRig rig;
  rig.ask(
      "ARRAY['ada@x.example'], bcc => ARRAY['boss@x.example'], subject => '<script>alert(1)</script>', text => "
      "E'</pre><img src=x onerror=alert(2)>', reference => 'order:<b>17'");
  const TestRelay relay;
  rig.send(relay);
  const auto path = (rig.directory.path() / "letter").string();
  const auto run = rig.mailroom({"message", "record", "1", "--to", path + ".json"});
  CAPTURE(run.errors);
  REQUIRE(run.status == 0);
  const auto record = parse_json(read_file(path + ".json"));
  CHECK(record["message"]["reference"] == "order:<b>17");
  REQUIRE(record["mails"].size() == 2);
  CHECK(record["mails"][0]["same"] == true);
  CHECK(record["mails"][0]["content_hash"] == record["mails"][0]["hash_now"]);
  CHECK(record["history"].size() > 1);
  CHECK(rig.mailroom({"message", "record", "1", "--to", path + ".json"}).status == 2);
  CHECK(rig.mailroom({"message", "record", "1", "--to", path}).status == 2);
  REQUIRE(rig.mailroom({"message", "record", "1", "--to", path + ".html"}).status == 0);
  const auto page = read_file(path + ".html");
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("<b>17") == std::string::npos);
  CHECK(page.find("&lt;script&gt;alert(1)&lt;/script&gt;") != std::string::npos);
  CHECK(page.find("byte for byte") != std::string::npos);
  CHECK(page.find("boss@x.example") != std::string::npos);
  // Of one recipient the record does not tell who else got a copy in secret.
  REQUIRE(rig.mailroom({"message", "record", "1", "--to", path + "2.html", "--recipient", "ada@x.example"})
              .status == 0);
  REQUIRE(rig.mailroom({"message", "record", "1", "--to", path + "2.json", "--recipient", "ada@x.example"})
              .status == 0);
  CHECK(read_file(path + "2.html").find("boss@x.example") == std::string::npos);
  CHECK(read_file(path + "2.json").find("boss@x.example") == std::string::npos);
}

}  // namespace mailroom::test::evidence_test
