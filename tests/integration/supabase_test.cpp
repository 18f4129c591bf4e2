// The Send Email Hook of Supabase Auth: each kind of its events, in the form that is documented, becomes a
// mail.

#include <map>

#include "base/json.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/gmime_reader.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::supabase_test {
namespace {

const std::vector<std::string> kinds_with_link{"signup", "invite", "magiclink", "recovery", "email"};
const std::vector<std::string> notices{
    "password_changed_notification",     "email_changed_notification",     "phone_changed_notification",
    "identity_linked_notification",      "identity_unlinked_notification", "mfa_factor_enrolled_notification",
    "mfa_factor_unenrolled_notification"};

nlohmann::json event_of(const std::string& kind) {
  return {
      {"user",
       {{"id", "8484b834-f29e-4af2-bf42-80644d154f76"},
        {"aud", "authenticated"},
        {"role", "authenticated"},
        {"email", "ada@mail.example"},
        {"phone", ""},
        {"app_metadata", {{"provider", "email"}, {"providers", {"email"}}}},
        {"user_metadata", {{"email", "ada@mail.example"}, {"sub", "8484b834-f29e-4af2-bf42-80644d154f76"}}},
        {"identities", nlohmann::json::array()},
        {"created_at", "2024-05-14T12:56:33.821567Z"},
        {"is_anonymous", false}}},
      {"email_data",
       {{"token", "305805"},
        {"token_hash", "7d5b7b1964cf5d388340a7f04f1dbb5eeb6c7b52ef8270e1737a58d0"},
        {"redirect_to", "http://localhost:3000/a b?c=1&d=ü"},
        {"email_action_type", kind},
        {"site_url", "https://auth.example/auth/v1"},
        {"token_new", ""},
        {"token_hash_new", ""}}}};
}

struct HookRig : DeliveryRig {
  TestRelay relay;

  HookRig() : DeliveryRig(0) {}

  std::string call(const nlohmann::json& event) {
    return connection->run("SELECT mailroom_supabase_hook($1::jsonb)", plain_json(event))[0][0].c_str();
  }
  /// The mails that are due, by recipient.
  std::map<std::string, ReadMessage> mails() {
    TestSender sender(database.conninfo(), relay.url(), {"--once"},
                      {{"MAILROOM_SEND_LINK", ""},
                       {"MAILROOM_SEND_TEMPLATES", source_directory + "/examples/supabase/templates"}});
    CHECK(sender.wait() == 0);
    INFO(sender.log());
    std::map<std::string, ReadMessage> read;
    for (const auto& mail : relay.taken())
      read[mail.to] = read_by_gmime(mail.message);
    return read;
  }
};

std::string text_of(const ReadMessage& mail, const std::string& type = "text/plain") {
  for (const auto& part : mail.parts)
    if (part.type == type) return part.content;
  return {};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each kind of an event with a link has a mail with the link and the code") {
  for (const auto& kind : kinds_with_link) {
    INFO(kind);
    HookRig rig;
    CHECK(rig.call(event_of(kind)) == "{}");
    const auto mails = rig.mails();
    REQUIRE(mails.size() == 1);
    const auto& mail = mails.at("ada@mail.example");
    CHECK_FALSE(mail.subject.empty());
    const auto link =
        "https://auth.example/auth/v1/verify?token=7d5b7b1964cf5d388340a7f04f1dbb5eeb6c7b52ef8270e1737a58d0&type=" +
        kind + "&redirect_to=http%3A%2F%2Flocalhost%3A3000%2Fa%20b%3Fc%3D1%26d%3D%C3%BC";
    CHECK(has(text_of(mail), link));
    CHECK(has(text_of(mail), "305805"));
    CHECK(has(text_of(mail, "text/html"), "305805"));
  }
}

TEST_CASE(
    "a change of the address is confirmed by both, each with its own code and hash, or by the new one alone") {
  auto event = event_of("email_change");
  event["user"]["new_email"] = "ada@new.example";
  SECTION("by both") {
    event["email_data"]["token_new"] = "424242";
    event["email_data"]["token_hash_new"] = "hash-of-the-present-address";
    HookRig rig;
    CHECK(rig.call(event) == "{}");
    const auto mails = rig.mails();
    REQUIRE(mails.size() == 2);
    const auto present = text_of(mails.at("ada@mail.example"));
    const auto fresh = text_of(mails.at("ada@new.example"));
    CHECK(has(present, "token=hash-of-the-present-address&"));
    CHECK(has(present, "305805"));
    CHECK(has(fresh, "token=7d5b7b1964cf5d388340a7f04f1dbb5eeb6c7b52ef8270e1737a58d0&"));
    CHECK(has(fresh, "424242"));
    CHECK(has(fresh, "from ada@mail.example to ada@new.example"));
  }
  SECTION("by the new one alone") {
    HookRig rig;
    CHECK(rig.call(event) == "{}");
    const auto mails = rig.mails();
    REQUIRE(mails.size() == 1);
    CHECK(has(text_of(mails.at("ada@new.example")), "305805"));
  }
}

TEST_CASE("a reauthentication has a code and no link, and a notice neither") {
  HookRig rig;
  CHECK(rig.call(event_of("reauthentication")) == "{}");
  const auto mails = rig.mails();
  REQUIRE(mails.size() == 1);
  CHECK(has(text_of(mails.at("ada@mail.example")), "305805"));
  CHECK_FALSE(has(text_of(mails.at("ada@mail.example")), "http"));
  for (const auto& kind : notices) {
    INFO(kind);
    HookRig other;
    auto event = event_of(kind);
    event["email_data"]["old_email"] = "old@mail.example";
    event["email_data"]["provider"] = "github";
    event["email_data"]["factor_type"] = "totp";
    CHECK(other.call(event) == "{}");
    const auto read = other.mails();
    REQUIRE(read.size() == 1);
    CHECK(read.begin()->first ==
          (kind == "email_changed_notification" ? "old@mail.example" : "ada@mail.example"));
    CHECK_FALSE(has(text_of(read.begin()->second), "305805"));
    CHECK_FALSE(has(text_of(read.begin()->second), "{{"));
  }
}

TEST_CASE("a kind that is new is an error of the sign-up, and no lost mail") {
  HookRig rig;
  CHECK(rig.call(event_of("carrier_pigeon")) ==
        R"({"error": {"message": "mailroom has no mail for \"carrier_pigeon\"", "http_code": 500}})");
  CHECK(rig.call(nlohmann::json::object()) ==
        R"({"error": {"message": "mailroom has no mail for \"\"", "http_code": 500}})");
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_messages") == 0);
}

TEST_CASE("the role of Supabase Auth needs one right, and its mail commits and rolls back with its user") {
  HookRig rig;
  rig.connection->run(
      "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'supabase_auth_admin') THEN CREATE ROLE "
      "supabase_auth_admin; END IF; END $$");
  rig.connection->run("GRANT EXECUTE ON FUNCTION mailroom_supabase_hook(jsonb) TO supabase_auth_admin");
  rig.connection->run("CREATE TABLE users (id int); GRANT ALL ON users TO supabase_auth_admin");
  rig.connection->run("SET ROLE supabase_auth_admin");
  rig.connection->run("SET statement_timeout = '2s'");
  rig.connection->run("BEGIN; INSERT INTO users VALUES (1)");
  CHECK(rig.call(event_of("signup")) == "{}");
  rig.connection->run("ROLLBACK");
  rig.connection->run("BEGIN; INSERT INTO users VALUES (2)");
  CHECK(rig.call(event_of("recovery")) == "{}");
  rig.connection->run("COMMIT");
  CHECK_THROWS_AS(rig.connection->run("SELECT * FROM mailroom_messages"), Error);
  rig.connection->run("RESET ROLE");
  CHECK(value<std::string>(*rig.connection,
                           "SELECT string_agg(template || ' ' || reference, ',') FROM mailroom_messages") ==
        "supabase_recovery auth:8484b834-f29e-4af2-bf42-80644d154f76");
  rig.connection->run("DROP OWNED BY supabase_auth_admin");
}

}  // namespace mailroom::test::supabase_test
