// A large batch is read in two statements and joined here. The join of the server is the oracle.

#include "claim/batch_reader.hpp"

#include <array>
#include <fmt/format.h>
#include <future>
#include <random>

#include "support/actions.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::batch_reader_test {
namespace {

std::string text_of(const claim::TokenRow& row) {
  std::string secret = "none";
  if (row.secret) {
    secret.clear();
    for (const auto byte : *row.secret)
      secret += fmt::format("{:02x}", byte);
  }
  constexpr std::array states{"due", "consumed", "expired", "wrong status"};
  return fmt::format("{} {} {} {} {} {} {} {} {}", row.id, row.action->name, secret, row.code, row.expires_at,
                     row.email, row.login, states.at(static_cast<std::size_t>(row.state)), row.created_at);
}

claim::TokenReading what(bool with_creation) {
  return {.with_creation = with_creation,
          .actions = std::make_shared<const queue::Actions>(queue::Actions::built_in())};
}

std::vector<std::string> join(db::Connection& connection, claim::BatchReader& reader,
                              claim::BatchTokens& tokens,
                              const claim::BatchReader::InTwoSessions& in_two_sessions = {}) {
  std::vector<std::string> rows;
  reader.join(
      connection, tokens, [&](const claim::TokenRow& row) { rows.push_back(text_of(row)); }, in_two_sessions);
  return rows;
}

std::vector<std::string> read(db::Connection& connection, claim::BatchReader& reader, std::int64_t batch,
                              int attempt = 1, bool with_creation = true,
                              const claim::BatchReader::InTwoSessions& in_two_sessions = {}) {
  auto tokens = claim::read_tokens(connection, {.batch = batch, .attempt = attempt}, what(with_creation));
  return join(connection, reader, tokens, in_two_sessions);
}

std::vector<std::string> joined(db::Connection& connection, std::int64_t batch, bool with_creation = true) {
  std::vector<std::string> rows;
  for (const auto& row : connection.run(
           "SELECT concat_ws(' ', id, action, CASE WHEN length(secret) = 32 THEN encode(secret, 'hex') "
           "ELSE 'none' END, coalesce(code, ''), expires_at, email, login, state, "
           "CASE WHEN $2 THEN created_at ELSE 0 END) FROM mailroom_batch_tokens($1, 1) ORDER BY id",
           batch, with_creation))
    rows.push_back(row[0].as<std::string>());
  return rows;
}

/// Adds the record of a batch that holds the tokens `ids`, with a mask or null, and returns its id.
std::int64_t add_batch(db::Connection& connection, const std::string& ids,
                       const std::optional<std::string>& mask) {
  return connection
      .run(
          "INSERT INTO mailroom_batches (queue, ids, ids_mask, collector, cursor, open_from, gap_ids) "
          "VALUES ('mailroom', $1::int8multirange, $2::bit varying, 0, 0, 1, '{}') RETURNING id",
          ids, mask)[0][0]
      .as<std::int64_t>();
}

/// 400 accounts with ids `step` apart and odd texts, and 1,000 tokens of random ones, of every state.
void fill(db::Connection& connection, int step, std::mt19937_64& random) {
  connection.run("SET session_replication_role = replica");
  connection.run(
      "INSERT INTO accounts (id, email, login, status) "
      "SELECT i * $1::bigint, format(E'a\\t%s\\\\N@example.com', i), E'\\\\ü' || i, "
      "(ARRAY['provisioned', 'active', 'suspended']::account_status[])[1 + i % 3] FROM generate_series(1, 400) i",
      step);
  connection.run("SELECT setseed($1)", std::uniform_real_distribution<double>(0, 1)(random));
  connection.run(
      "INSERT INTO tokens (id, action, account, secret, code, expires_at, consumed_at, created_at) "
      "SELECT i, (ARRAY['activation', 'password_recovery']::token_action[])[1 + (random() * 1.99)::int % 2], "
      "(1 + floor(random() * 405)) * $1::bigint, "
      "CASE WHEN random() < 0.1 THEN int8send(i) ELSE sha256(i::text::bytea) END, "
      "CASE WHEN random() < 0.5 THEN lpad(i::text, 5, '0') END, "
      "CASE WHEN random() < 0.1 THEN 1 ELSE 2000000000 END, CASE WHEN random() < 0.1 THEN 7 END, 1700000000 + i "
      "FROM generate_series(1, 1000) i WHERE random() < 0.9",
      step);
  connection.run("RESET session_replication_role");
}

}  // namespace

TEST_CASE("a batch is read as the server would join it, whatever its tokens and accounts are") {
  const auto seed = GENERATE(1, 2, 3);
  // Close together, a range of accounts is read; far apart, a list.
  const auto step = GENERATE(1, 1000);
  CAPTURE(seed, step);
  TestDatabase database;
  const auto connection = database.connect();
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  fill(*connection, step, random);
  std::string mask;
  for (int i = 0; i < 700; ++i)
    mask += random() % 3 == 0 ? '0' : '1';

  claim::BatchReader reader;
  const auto other = database.connect();
  int shared = 0;
  const auto in_two_sessions = [&](const auto& work) {
    auto reading = std::async(std::launch::async, [&] { work(*other); });
    work(*connection);
    reading.get();
    ++shared;
  };
  const auto check = [&](const std::string& ids, const std::optional<std::string>& bits) {
    const auto batch = add_batch(*connection, ids, bits);
    const auto expected = joined(*connection, batch);
    CHECK(expected.size() > 100);
    CHECK(read(*connection, reader, batch) == expected);
    CHECK(read(*connection, reader, batch, 1, false) == joined(*connection, batch, false));
    CHECK(read(*connection, reader, batch, 1, true, in_two_sessions) == expected);
    const claim::Lease lease{.batch = batch, .attempt = 1};
    auto ahead = claim::read_tokens(*other, lease, what(true));
    auto tokens = claim::read_tokens(*connection, lease, what(true), std::move(ahead));
    CHECK(join(*connection, reader, tokens) == expected);
  };
  check("{[1,1001)}", std::nullopt);
  check("{[5,100),[150,151),[200,900)}", std::nullopt);
  check("{[11,711)}", mask);
  CHECK(shared == (step == 1 ? 0 : 3));
}

TEST_CASE("nothing is read of a batch that was leased again, or whose tokens are gone") {
  TestDatabase database;
  const auto connection = database.connect();
  std::mt19937_64 random(1);
  fill(*connection, 1, random);
  claim::BatchReader reader;
  const auto batch = add_batch(*connection, "{[1,1001)}", std::nullopt);
  CHECK(read(*connection, reader, batch, 2).empty());
  CHECK_FALSE(read(*connection, reader, batch).empty());
  connection->run("DELETE FROM tokens");
  CHECK(read(*connection, reader, batch).empty());
}

TEST_CASE("a session reads on when an application has changed the types of its accounts' columns") {
  TestDatabase database;
  const auto connection = database.connect();
  std::mt19937_64 random(1);
  const auto step = GENERATE(1, 1000);
  CAPTURE(step);
  fill(*connection, step, random);
  claim::BatchReader reader;
  const auto batch = add_batch(*connection, "{[1,1001)}", std::nullopt);
  const auto before = read(*connection, reader, batch);
  CHECK_FALSE(before.empty());
  connection->run(
      "DROP TRIGGER before_account_address_change ON accounts; "
      "ALTER TABLE accounts ALTER COLUMN email TYPE varchar(300), ALTER COLUMN login TYPE text");
  CHECK(read(*connection, reader, batch) == before);
}

TEST_CASE("tokens that were read ahead are used once, and for their lease only") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const auto batch = add_batch(*connection, "{[1,4)}", std::nullopt);
  claim::BatchReader reader;
  const auto read_ahead = [&] {
    return claim::read_tokens(*connection, {.batch = batch, .attempt = 1}, what(true));
  };
  claim::BatchTokens tokens;
  const auto read_with = [&](claim::BatchTokens ahead, int attempt) {
    tokens =
        claim::read_tokens(*connection, {.batch = batch, .attempt = attempt}, what(true), std::move(ahead));
    return join(*connection, reader, tokens).size();
  };
  auto ahead = read_ahead();
  connection->run("DELETE FROM tokens WHERE id = 2");
  CHECK(read_with(std::move(ahead), 1) == 3);
  // Only their memory is left.
  CHECK(read_with(std::move(tokens), 1) == 2);
  ahead = read_ahead();
  connection->run("DELETE FROM tokens WHERE id = 3");
  CHECK(read_with(std::move(ahead), 2) == 0);
  CHECK(read_with(std::move(tokens), 1) == 1);
  ahead = read_ahead();
  ahead.read_at -= std::chrono::seconds(1);
  connection->run("DELETE FROM tokens");
  CHECK(read_with(std::move(ahead), 1) == 0);
}

TEST_CASE(
    "an account that changes between the two statements is up to date, and one that is deleted has no tokens") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto other = database.connect();
  const auto watch = database.connect();
  insert_accounts(*connection, 3);
  const auto batch = add_batch(*connection, "{[1,4)}", std::nullopt);
  std::vector<std::string> rows;
  std::future<void> reading;
  // The snapshot of the first statement is older than the changes, that of the second newer.
  other->transact([&](pqxx::work& transaction) {
    transaction.exec("LOCK TABLE tokens");
    reading = std::async(std::launch::async, [&] {
      claim::BatchReader reader;
      auto tokens = claim::read_tokens(*connection, {.batch = batch, .attempt = 1}, what(false));
      reader.join(*connection, tokens, [&](const claim::TokenRow& row) {
        rows.push_back(
            fmt::format("{} {} {}", row.id, row.email, row.state == claim::TokenState::wrong_status));
      });
    });
    CHECK(eventually([&] { return locks(*watch, "relation = 'tokens'::regclass AND NOT granted") > 0; }));
    transaction.exec("UPDATE accounts SET email = 'new@example.com', status = 'active' WHERE id = 1");
    transaction.exec("DELETE FROM accounts WHERE id = 2");
  });
  reading.get();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == "1 new@example.com true");
  CHECK(rows[1].ends_with(" false"));
}

}  // namespace mailroom::test::batch_reader_test
