// mailroom init in a terminal, with every answer wrong once, and unattended.

#include <filesystem>

#include "config/settings.hpp"
#include "handover/webhook_process.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/terminal.hpp"
#include "support/test_database.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::init_test {
namespace {

struct InitRig {
  TestDatabase database{TestDatabase::Schema::none};
  TemporaryDirectory directory;
  TestRelay relay;

  std::string path(const std::string& name) const { return directory.path() / name; }
  std::vector<std::string> words(std::vector<std::string> more) const {
    std::vector<std::string> all{mailroom_binary, "init", "--directory", directory.path()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<std::string> unattended(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{
        "--yes", "--database-url", database.conninfo(), "--from", "shop@app.example", "--relay", relay.url()};
    all.insert(all.end(), more.begin(), more.end());
    return words(all);
  }
  unsigned mode_of(const std::string& name) const {
    return static_cast<unsigned>(std::filesystem::status(path(name)).permissions());
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int count_of(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace

TEST_CASE("init asks again for each answer that cannot be used, and leads to the first mail") {
  InitRig rig;
  const auto run = run_in_terminal(rig.words({}), {}, 100,
                                   "dbname=there_is_no_such_database\n" + rig.database.conninfo() + "\n" +
                                       "pg_mine\n\n" + "nobody\n\n" + "Shop <shop@app.example>\n" +
                                       "relay.example\n" + "smtp://127.0.0.1:1\n" + rig.relay.url() + "\n" +
                                       "app.example\n" + "https://app.example/{action}?token={token}\n" +
                                       "me@\n" + "me@mail.example\n" + "y\n");
  INFO(run.output);
  REQUIRE(run.status == 0);
  CHECK(count_of(run.output, "database, as a libpq URI") == 2);
  CHECK(count_of(run.output, "schema that mailroom lives in [mailroom]: ") == 2);
  CHECK(count_of(run.output, "sender of the mails: ") == 3);
  CHECK(count_of(run.output, "relay that takes them") == 3);
  CHECK(has(run.output, "127.0.0.1:1 cannot be reached"));
  CHECK(count_of(run.output, "link of mails that have one") == 2);
  CHECK(count_of(run.output, "who gets a mail for trial") == 2);
  CHECK(has(run.output, "an answer is needed"));
  CHECK(has(run.output, "$ mailroom migrate"));
  REQUIRE(rig.relay.taken().size() == 1);
  CHECK(rig.relay.taken().front().to == "me@mail.example");
  CHECK(rig.mode_of("signing.key") == 0600);
  CHECK(rig.mode_of("mailroom.yaml") == 0600);
  const auto settings = config::load_settings({.file = rig.path("mailroom.yaml"), .flags = {}}, {});
  CHECK(settings.send.from == "Shop <shop@app.example>");
  CHECK(settings.database.schema == "mailroom");
}

TEST_CASE("a declined init has changed nothing") {
  InitRig rig;
  const auto run = run_in_terminal(rig.words({"--database-url", rig.database.conninfo(), "--from",
                                              "a@b.example", "--relay", rig.relay.url()}),
                                   {}, 100, "\n\n\nn\n");
  CHECK(run.status == 7);
  CHECK(std::filesystem::is_empty(rig.directory.path()));
  CHECK_FALSE(value<bool>(*rig.database.connect(), "SELECT to_regnamespace('mailroom') IS NOT NULL"));
}

TEST_CASE("the password of a relay is tried, not shown, and is in a file of its own") {
  InitRig rig;
  const TestCertificate certificate;
  const TestRelay relay(
      {.certificate = &certificate, .offers_starttls = true, .user = "app", .password = "top'secret"});
  const auto run = run_in_terminal(rig.words({"--database-url", rig.database.conninfo(), "--from",
                                              "a@b.example", "--relay", relay.url("app")}),
                                   {{"MAILROOM_SEND_CA_FILE", certificate.certificate()}}, 100,
                                   "\nanother\ntop'secret\n\n\ny\n");
  INFO(run.output);
  REQUIRE(run.status == 0);
  CHECK(rig.mode_of("relay-password") == 0600);
  CHECK(read_file(rig.path("relay-password")) == "top'secret\n");
  CHECK(count_of(run.output, "password of that user") == 2);
  CHECK(config::load_settings({.file = rig.path("mailroom.yaml"), .flags = {}}, {}).send.path.ca_file ==
        certificate.certificate());
  CHECK(has(run.output, "does not let the user in"));
  CHECK_FALSE(has(read_file(rig.path("mailroom.yaml")), "secret"));
}

TEST_CASE("init takes any relay, tries it, and writes what was given for it") {
  InitRig rig;
  const TemporaryDirectory of_ses;
  const auto credentials =
      of_ses.write("credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = b\n", 0600);
  const auto facts =
      of_ses.write("facts", R"({"account": {"SendingEnabled": true, "ProductionAccessEnabled": true},
                   "identities": {"app.example": {"VerifiedForSendingStatus": true}}})");
  const ServerProcess ses("provider_server.py", "account", {facts});
  const std::map<std::string, std::string> given{
      {"MAILROOM_SEND_SES_ENDPOINT", ses.url("")},
      {"MAILROOM_SEND_SES_CREDENTIALS_FILE", std::filesystem::relative(credentials)}};
  const auto words = [&](const std::string& from) {
    return rig.words({"--yes", "--database-url", rig.database.conninfo(), "--from", from, "--relay",
                      "ses://eu-west-1", "--to", "me@mail.example"});
  };
  const auto refused = run_to_end(words("shop@other.example"), given);
  CHECK(refused.status == 1);
  CHECK(has(refused.errors, "neither shop@other.example nor its domain is a verified identity"));
  CHECK(std::filesystem::is_empty(rig.directory.path()));
  const auto run = run_to_end(words("shop@app.example"), given);
  INFO(run.output << run.errors);
  REQUIRE(run.status == 0);
  CHECK(has(read_file(ses.taken()), "me@mail.example"));
  const auto settings = config::load_settings({.file = rig.path("mailroom.yaml"), .flags = {}}, {});
  CHECK(settings.send.path.targets == config::parse_relays("ses://eu-west-1"));
  CHECK(settings.send.path.option("send.ses_endpoint") == ses.url(""));
  CHECK(settings.send.path.option("send.ses_credentials_file") == credentials);
}

TEST_CASE("init runs unattended, and once: it changes no configuration that is there, and no key") {
  InitRig rig;
  rig.directory.write("mailroom.yaml", "log:\n  level: debug\nsigning:\n  key_file: mine\n", 0600);
  rig.directory.write("mine", std::string(64, 'a') + "\n");
  const auto first = run_to_end(rig.unattended({"--to", "me@mail.example", "--schema", "mail's"}), {});
  INFO(first.output << first.errors);
  CHECK(first.status == 0);
  CHECK(rig.relay.taken().size() == 1);
  const auto settings = config::load_settings({.file = rig.path("mailroom.yaml"), .flags = {}}, {});
  CHECK(settings.log.level == LogLevel::debug);
  CHECK(settings.signing.key_file == rig.path("mine"));
  CHECK(settings.database.schema == "mail's");
  const auto again = run_to_end(rig.unattended(), {});
  CHECK(again.status == 3);
  CHECK(has(again.errors, "mailroom.yaml has database.url already"));
}

TEST_CASE("what is missing without a terminal, or wrong, ends init before it changes anything") {
  InitRig rig;
  const auto missing = run_to_end(rig.words({"--database-url", rig.database.conninfo()}), {});
  CHECK(missing.status == 2);
  CHECK(has(missing.errors, "--from is not given, and there is no terminal to ask on"));
  const auto wrong = run_to_end(rig.unattended({"--link", "app.example"}), {});
  CHECK(wrong.status == 2);
  const auto deaf = run_to_end(rig.words({"--yes", "--database-url", rig.database.conninfo(), "--from",
                                          "a@b.example", "--relay", "smtp://127.0.0.1:1"}),
                               {});
  CHECK(deaf.status == 1);
  CHECK(has(deaf.errors, "127.0.0.1:1 cannot be reached"));
  const auto nowhere =
      run_to_end(rig.words({"--yes", "--database-url", "dbname=there_is_no_such_database"}), {});
  CHECK(nowhere.status == 4);
  CHECK(std::filesystem::is_empty(rig.directory.path()));
}

}  // namespace mailroom::test::init_test
