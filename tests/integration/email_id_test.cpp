// What HTTP needs of SQL: the ids that applications keep, messages by them, keys of roles, tags, and a
// subject beside a template.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fmt/format.h>
#include <future>
#include <random>
#include <vector>

#include "crypto/hmac.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_role.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::email_id_test {
namespace {

std::string big_endian(std::uint64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes += static_cast<char>(number >> shift);
  return bytes;
}

crypto::Digest hmac_of(const std::string& key, const std::string& text) {
  const std::vector<std::uint8_t> bytes(key.begin(), key.end());
  return crypto::Hmac(std::span<const std::uint8_t>(bytes)).digest({text});
}

std::uint64_t first_bits(const std::string& key, const std::string& text) {
  const auto digest = hmac_of(key, text);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < 8; ++i)
    bits = bits << 8U | digest[i];
  return bits;
}

std::string derived(const std::string& secret, const std::string& purpose) {
  const auto digest = hmac_of(secret, purpose);
  return {digest.begin(), digest.end()};
}

/// The uuid of a message by the words of the contract, made without the database.
std::string uuid_of(const std::string& secret, std::int64_t id, std::int64_t microseconds) {
  const auto number = std::bit_cast<std::uint64_t>(id);
  const auto seal =
      first_bits(derived(secret, "mailroom id mac"),
                 "\x01" + big_endian(number) + big_endian(std::bit_cast<std::uint64_t>(microseconds))) >>
      6U;
  const auto masked = number ^ first_bits(derived(secret, "mailroom id mask"), "\x01" + big_endian(seal));
  // 58 bits and 64 bits, with version and variant between them.
  const std::uint64_t high = seal >> 10U << 16U | 0x4000U | (seal & 0x3ffU) << 2U | masked >> 62U;
  const std::uint64_t low = 0x8000000000000000U | (masked & 0x3fffffffffffffffU);
  const auto hex = fmt::format("{:016x}{:016x}", high, low);
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

std::string secret_of_vectors() {
  std::string secret;
  for (int i = 0; i < 32; ++i)
    secret += static_cast<char>(i);
  return secret;
}

void use_secret_of_vectors(db::Connection& connection) {
  connection.run(
      "UPDATE mailroom_id_secret SET secret = decode('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex')");
}

/// A group of producers, as init --roles makes them, and their sessions.
struct Shop {
  Shop(const DatabaseRig& rig, const std::string& name) : role(rig.database, name) {
    rig.connection->run(fmt::format(
        "GRANT EXECUTE ON FUNCTION mailroom_send, mailroom_cancel, mailroom_reschedule, mailroom_email, mailroom_emails, mailroom_email_id, "
        "mailroom_message_of, mailroom_message_status TO {0}",
        role.name()));
    session = std::make_unique<db::Connection>(role.conninfo(), "test");
  }

  TestRole role;
  std::unique_ptr<db::Connection> session{};
};

std::string text_of(db::Connection& connection, const std::string& sql) {
  const auto rows = connection.run(sql);
  return rows.empty() || rows[0][0].is_null() ? std::string("-") : std::string(rows[0][0].c_str());
}

std::string send(const std::string& key, const std::string& subject = "s", const std::string& more = {}) {
  return fmt::format(
      "SELECT mailroom_send(ARRAY['a@x.example'], subject => '{}', text => 't', idempotency_key => '{}'{})",
      subject, key, more);
}

}  // namespace

TEST_CASE("the id of a message is that of the vectors, and the same by SQL as by C++") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto secret = "decode('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex')";
  const auto uuid = [&](const std::string& id, const std::string& at) {
    return text_of(connection, fmt::format("SELECT mailroom_uuid({}, 1, {}, '{}')", secret, id, at));
  };
  CHECK(uuid("1", "2026-11-28 12:00:00+00") == "a2220cc1-7604-48c4-b811-7ed7eb1c0acf");
  CHECK(uuid("2", "2026-11-28 12:00:00+00") == "c564fd11-3fbc-4c1a-ba49-d3c98dc8c9c3");
  CHECK(uuid("9223372036854775807", "2026-11-28 12:00:00.123456+00") ==
        "a0f4aec7-71ab-4a71-b737-900feea8cc87");
  std::mt19937_64 random(20261129);
  for (int i = 0; i < 200; ++i) {
    const auto id = static_cast<std::int64_t>(random() >> (1 + random() % 62));
    const auto microseconds = static_cast<std::int64_t>(random() % 4'000'000'000'000'000);
    const auto made = text_of(
        connection,
        fmt::format(
            "SELECT u || ' ' || (o).id || ' ' || ((o).seal = mailroom_id_seal({0}, 1, {1}, a)) FROM (SELECT u, a, mailroom_opened_uuid({0}, 1, u) AS o FROM (SELECT mailroom_uuid({0}, 1, {1}, a) AS u, a "
            "FROM (SELECT timestamptz 'epoch' + interval '1 microsecond' * {2} AS a) t) u) v",
            secret, id, microseconds));
    CHECK(made == fmt::format("{} {} true", uuid_of(secret_of_vectors(), id, microseconds), id));
  }
}

TEST_CASE("a message is found by its id by its role alone, and by no guess") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  use_secret_of_vectors(connection);
  const Shop shop(rig, "shop");
  const Shop other(rig, "other");
  const auto message = text_of(*shop.session, send("k"));
  const auto id = text_of(*shop.session, fmt::format("SELECT mailroom_email_id({})", message));
  CHECK(text_of(*shop.session, fmt::format("SELECT mailroom_message_of(upper('{}')::uuid)", id)) == message);
  CHECK(text_of(*other.session, fmt::format("SELECT mailroom_message_of('{}')", id)) == "-");
  CHECK(text_of(*other.session, fmt::format("SELECT mailroom_email_id({})", message)) == "-");
  CHECK(text_of(*other.session, fmt::format("SELECT message FROM mailroom_email('{}')", id)) == "-");
  CHECK(text_of(*other.session, "SELECT message FROM mailroom_emails()") == "-");
  CHECK(refusal(*other.session, fmt::format("SELECT * FROM mailroom_emails(10, '{}')", id))
            .starts_with("P0002"));
  CHECK(refusal(*other.session, fmt::format("SELECT mailroom_reschedule({}, now())", message))
            .starts_with("42501"));
  CHECK(refusal(*other.session, "SELECT secret FROM mailroom_id_secret").starts_with("42501"));
  CHECK(text_of(*shop.session,
                "SELECT count(mailroom_message_of(gen_random_uuid())) FROM generate_series(1, 5000)") == "0");
  // The same number at another time is another message.
  connection.run("UPDATE mailroom_messages SET created_at = created_at + interval '1 microsecond'");
  CHECK(text_of(*shop.session, fmt::format("SELECT mailroom_message_of('{}')", id)) == "-");
}

TEST_CASE("the key of another role tells nothing, whatever the mail is") {
  const DatabaseRig rig;
  const Shop shop(rig, "shop");
  const Shop other(rig, "other");
  const auto first = text_of(*shop.session, send("order:17"));
  const auto same = text_of(*other.session, send("order:17"));
  CHECK(same != first);
  CHECK(refusal(*other.session, send("order:18", "other")).empty());
  CHECK(refusal(*shop.session, send("order:18", "mine")).empty());
  CHECK(text_of(*other.session, send("order:17")) == same);
  CHECK(text_of(*rig.connection, "SELECT count(*) FROM tokens") == "4");
}

TEST_CASE("a message is shown as it is, and what became of it") {
  const DatabaseRig rig;
  const Shop shop(rig, "shop");
  auto& session = *shop.session;
  session.run(
      R"(SELECT mailroom_send(ARRAY['Ada <ada@x.example>', 'b@x.example'], subject => 's', text => 't', html => 'h', cc => '{c@x.example}',
    bcc => '{d@x.example}', sender => 'Shop <s@x.example>', reply_to => 'r@x.example, R <q@x.example>', send_after => '2100-01-01',
    options => '{"tags": {"kind": "welcome"}}'))");
  CHECK(
      text_of(
          session,
          "SELECT concat_ws(' | ', sender, recipients, cc, bcc, reply_to, subject, text, html, send_after AT TIME ZONE 'UTC', tags, states) "
          "FROM mailroom_email(mailroom_email_id(1))") ==
      "Shop <s@x.example> | {\"Ada <ada@x.example>\",b@x.example} | {c@x.example} | {d@x.example} | {r@x.example,\"R <q@x.example>\"} | s | t | h | "
      "2100-01-01 00:00:00 | {\"kind\": \"welcome\"} | {scheduled}");
  CHECK(text_of(session, "SELECT mailroom_reschedule(1, '2101-01-01')") == "t");
  CHECK(text_of(session, "SELECT mailroom_reschedule(1, now())") == "t");
  CHECK(text_of(session, "SELECT mailroom_cancel(1)") == "cancelled");
  CHECK(text_of(session, "SELECT mailroom_reschedule(1, now())") == "f");
  CHECK(text_of(session, "SELECT mailroom_reschedule(2, now())") == "-");
  CHECK(text_of(session, "SELECT states FROM mailroom_email(mailroom_email_id(1))") == "{cancelled}");
  for (int i = 0; i < 5; ++i)
    session.run(send(std::to_string(i)));
  const auto list = [&](const std::string& arguments) {
    return text_of(
        session,
        fmt::format(
            "SELECT string_agg(message::text, ' ' ORDER BY n) FROM mailroom_emails({}) WITH ORDINALITY e (email_id, message, a, b, "
            "c, d, e, f, g, h, i, j, k, n)",
            arguments));
  };
  CHECK(list("") == "6 5 4 3 2 1");
  CHECK(list("2") == "6 5");
  CHECK(list("2, mailroom_email_id(5)") == "4 3");
  CHECK(list("2, newer_than => mailroom_email_id(3)") == "5 4");
}

TEST_CASE("tags are an object of short words, and no part of what a key stands for; a batch is one") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto tagged = [](const std::string& tags) {
    return fmt::format(", options => '{{\"tags\": {}}}'", tags);
  };
  const auto first = text_of(connection, send("k", "s", tagged(R"({"a": "b-C_1"})")));
  CHECK(text_of(connection, send("k", "s", tagged(R"({"a": "other"})"))) == first);
  CHECK(text_of(connection, send("k")) == first);
  for (const auto* wrong :
       {R"(["a"])", R"({"a b": "c"})", R"({"a": "two words"})", R"({"a": 1})", R"({"": "c"})"})
    CHECK(refusal(connection, send("n", "s", tagged(wrong))).starts_with("22023"));
  CHECK(
      refusal(
          connection,
          "SELECT mailroom_send('{a@x.example}', subject => 's', text => 't', options => jsonb_build_object('tags', "
          "(SELECT jsonb_object_agg('n' || i, 'v') FROM generate_series(1, 76) i)))")
          .starts_with("22023"));
  connection.run(
      R"(INSERT INTO mailroom_messages (recipients, subject, text, options) VALUES ('{a@x.example}', 's', 't', '{"tags": {"by": "insert"}}'))");
  CHECK(text_of(connection,
                "SELECT options->'tags'->>'by' FROM mailroom_messages ORDER BY id DESC LIMIT 1") == "insert");
  const auto batch = R"(, options => '{"batch": "abc"}')";
  const auto one = text_of(connection, send("b", "s", batch));
  CHECK(text_of(connection, send("b", "s", batch)) == one);
  CHECK(refusal(connection, send("b", "s", R"(, options => '{"batch": "abd"}')")).starts_with("23505"));
  CHECK(refusal(connection, send("b")).starts_with("23505"));
  CHECK(refusal(connection, send("k", "s", batch)).starts_with("23505"));
}

TEST_CASE("many messages are asked for by one statement, and the one that is refused is named") {
  const DatabaseRig rig;
  const Shop shop(rig, "shop");
  const std::string good =
      R"({"recipients": ["a@x.example"], "subject": "s", "text": "t", "attachments": [{"name": "a", "content": "aGk="}]})";
  const std::string bad = R"({"recipients": ["nobody"], "subject": "s", "text": "t"})";
  const auto each = [&](const std::string& mails, const std::string& more = {}) {
    return fmt::format("mailroom_send_each('{}'{})", mails, more);
  };
  CHECK(text_of(*shop.session,
                "SELECT string_agg(place || ' ' || (email_id = mailroom_email_id(message)), ', ') FROM " +
                    each("[" + good + "," + good + "]")) == "0 true, 1 true");
  CHECK(refusal(*shop.session, "SELECT * FROM " + each("[" + good + "," + bad + "]")).starts_with("23514"));
  CHECK(text_of(*shop.session,
                "SELECT string_agg(concat_ws(' ', place, code, email_id IS NOT NULL), ', ') FROM " +
                    each("[" + bad + "," + good + "," + bad + "]", ", true")) == "0 23514 f, 1 t, 2 23514 f");
  CHECK(text_of(*rig.connection, "SELECT count(*) FROM mailroom_messages") == "3");
  const TestRole stranger(rig.database, "stranger");
  db::Connection session(stranger.conninfo(), "test");
  CHECK(refusal(session, "SELECT * FROM " + each("[" + good + "]")).starts_with("42501"));
}

TEST_CASE("a subject takes the place of that of a template") {
  DeliveryRig rig(0);
  const TemporaryDirectory templates;
  templates.write("receipt.subject", "Your receipt");
  templates.write("receipt.txt", "Order {{order}}");
  rig.connection->run(
      "SELECT mailroom_send('{a@mail.example}', 'receipt', '{\"order\": 17}', subject => 'Order 17'), "
      "mailroom_send('{b@mail.example}', 'receipt', '{\"order\": 18}')");
  for (const auto* wrong : {"'receipt', subject => 's', text => 't'", "'receipt', text => 't'",
                            "subject => 's', data => '{}'", "subject => 's'"})
    CHECK(refusal(*rig.connection, fmt::format("SELECT mailroom_send('{{a@mail.example}}', {})", wrong))
              .starts_with("23514"));
  const TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once", "--connections", "1"},
                    {{"MAILROOM_SEND_TEMPLATES", templates.path().string()}});
  CHECK(sender.wait() == 0);
  INFO(sender.log());
  std::string subjects;
  for (const auto& mail : relay.taken()) {
    const auto at = mail.message.find("Subject: ");
    REQUIRE(at != std::string::npos);
    subjects += mail.to + mail.message.substr(at + 8, mail.message.find("\r\n", at) - at - 8) + "; ";
  }
  CHECK(subjects == "a@mail.example Order 17; b@mail.example Your receipt; ");
}

TEST_CASE("nothing is stored with a key once its end has committed, and what is being stored ends first") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const Shop shop(rig, "shop");
  const TestRole door(rig.database, "door");
  connection.run(fmt::format(
      "ALTER ROLE {0} NOINHERIT; GRANT EXECUTE ON FUNCTION mailroom_use_keys, mailroom_find_key TO {0}",
      door.name()));
  const auto create = [&](const std::string& role) {
    return fmt::format("SELECT mailroom_create_key('re_abcde', sha256('secret'), '{}', 'web', 'full_access')",
                       role);
  };
  CHECK(refusal(connection, create("postgres")).starts_with("22023"));
  CHECK(refusal(connection, create(door.name())).starts_with("22023"));
  CHECK(refusal(connection, create("nobody_has_this")).starts_with("42704"));
  // The service could not act as it.
  CHECK_THAT(refusal(connection, create(shop.role.name())),
             Catch::Matchers::ContainsSubstring("is no member of"));
  connection.run(fmt::format("GRANT {} TO {}", shop.role.name(), door.name()));
  connection.run(create(shop.role.name()));
  db::Connection session(door.conninfo(), "test");
  CHECK(text_of(session, "SELECT role FROM mailroom_find_key(sha256('secret'))") == shop.role.name());
  CHECK(text_of(session, "SELECT role FROM mailroom_find_key(sha256('other'))") == "-");
  CHECK(refusal(session, "SELECT * FROM mailroom_keys").starts_with("42501"));
  CHECK(refusal(session, send("x")).starts_with("42501"));
  const auto use = fmt::format("SELECT mailroom_use_keys(ARRAY[sha256('secret')], '{}')", shop.role.name());
  session.run("BEGIN");
  session.run(use);
  session.run("SET LOCAL ROLE " + shop.role.name());
  session.run(send("x"));
  auto revoked = std::async(std::launch::async, [&] {
    db::Connection owner(rig.database.conninfo(), "test");
    return text_of(owner, "SELECT mailroom_revoke_key('re_abcde')");
  });
  CHECK(revoked.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout);
  session.run("COMMIT");
  CHECK(revoked.get() == "t");
  CHECK(refusal(session, use).starts_with("28000"));
  CHECK(text_of(session, "SELECT role FROM mailroom_find_key(sha256('secret'))") == "-");
  CHECK(
      text_of(
          connection,
          "SELECT string_agg(kind || ' ' || (details->>'key'), ', ' ORDER BY id) FROM mailroom_operations") ==
      "create key re_abcde, revoke key re_abcde");
}

TEST_CASE("logins of one group are one application until one of them has a key") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const TestRole group(rig.database, "group");
  const Shop unused(rig, "unused");
  const TestRole web(rig.database, "web");
  const TestRole jobs(rig.database, "jobs");
  connection.run(fmt::format(
      "ALTER ROLE {0} NOLOGIN; GRANT EXECUTE ON FUNCTION mailroom_send TO {0}; GRANT {0} TO {1}, {2}",
      group.name(), web.name(), jobs.name()));
  const auto sent_by = [&](const TestRole& role) {
    db::Connection session(role.conninfo(), "test");
    return text_of(session, send("k"));
  };
  const auto shared = sent_by(web);
  CHECK(sent_by(jobs) == shared);
  connection.run(fmt::format(
      "SELECT mailroom_create_key('re_abcde', sha256('secret'), '{}', NULL, 'full_access')", web.name()));
  CHECK(sent_by(jobs) == shared);
  const auto own = sent_by(web);
  CHECK(own != shared);
  CHECK(sent_by(web) == own);
}

}  // namespace mailroom::test::email_id_test
