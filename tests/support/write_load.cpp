#include "support/write_load.hpp"

#include <random>
#include <stdexcept>

#include "support/subprocess.hpp"

namespace mailroom::test {
namespace {

using Random = std::mt19937_64;

int draw(Random& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

/// Inserts accounts with the logins $1$2 to $1$3, and their tokens. If $4, every third is active.
constexpr auto insert_sql = R"(
WITH made AS (
  INSERT INTO accounts (email, login, status)
  SELECT $1 || g || '@test.example', $1 || g,
         CASE WHEN $4 AND g % 3 = 0 THEN 'active' ELSE 'provisioned' END::account_status
  FROM generate_series($2::int, $3::int) g RETURNING id, status)
INSERT INTO tokens (account, action) SELECT id, 'password_recovery' FROM made WHERE status = 'active')";

struct Logins {
  std::string prefix;
  bool recovers;
  int next = 1;
};

void insert(pqxx::work& transaction, Logins& logins, int rows) {
  db::Connection::execute(transaction, insert_sql, logins.prefix, logins.next, logins.next + rows - 1,
                          logins.recovers);
  logins.next += rows;
}

/// Inserts another token of the previous account, as the first write of its transaction.
void insert_token(pqxx::work& transaction, const Logins& logins) {
  db::Connection::execute(transaction, R"(
INSERT INTO tokens (account, action)
SELECT id, CASE status WHEN 'active' THEN 'password_recovery' ELSE 'activation' END::token_action
FROM accounts WHERE login = $1)",
                          logins.prefix + std::to_string(logins.next - 1));
}

void hold(Random& random) {
  std::this_thread::sleep_for(std::chrono::milliseconds(draw(random, 150)));
}

struct RollBack {};

/// One transaction of a kind drawn from `random`.
void write_once(db::Connection& connection, Random& random, Logins& logins) {
  const int kind = draw(random, 20);
  try {
    connection.transact([&](pqxx::work& transaction) {
      if (kind == 11 || kind == 12) return insert_token(transaction, logins);
      insert(transaction, logins, kind < 4 ? 1 + draw(random, 40) : 1);
      if (kind >= 4 && kind < 7) hold(random);
      if (kind >= 7 && kind < 9) {
        db::Connection::execute(transaction, "SAVEPOINT half");
        insert(transaction, logins, 2);
        db::Connection::execute(transaction, "ROLLBACK TO half");
        insert(transaction, logins, 1);
      }
      if (kind == 9) {
        hold(random);
        throw RollBack{};
      }
      if (kind == 10) throw RollBack{};
    });
  } catch (const RollBack&) {
    return;
  }
}

/// A two-phase commit with a pause between its phases; some are rolled back.
void write_in_two_phases(db::Connection& connection, Random& random, Logins& logins) {
  const auto name = logins.prefix + std::to_string(logins.next);
  connection.run("BEGIN");
  try {
    connection.run(insert_sql, logins.prefix, logins.next, logins.next + 2, logins.recovers);
    logins.next += 3;
    connection.run("PREPARE TRANSACTION '" + name + "'");
  } catch (const db::DatabaseError&) {
    connection.run("ROLLBACK");
    throw;
  }
  hold(random);
  connection.run((draw(random, 4) == 0 ? "ROLLBACK PREPARED '" : "COMMIT PREPARED '") + name + "'");
}

}  // namespace

WriteLoad::WriteLoad(std::string conninfo, int writers, std::uint64_t seed, const Options& options)
    : conninfo_(std::move(conninfo)), options_(options) {
  for (int writer = 0; writer < writers; ++writer)
    writers_.emplace_back([this, writer, seed] { write(writer, seed + static_cast<std::uint64_t>(writer)); });
}

void WriteLoad::write(int writer, std::uint64_t seed) {
  Random random(seed);
  std::unique_ptr<db::Connection> connection;
  Logins logins{.prefix = options_.name + std::to_string(writer) + "-", .recovers = options_.recovers};
  while (!enough_) {
    try {
      if (!connection) connection = std::make_unique<db::Connection>(conninfo_, "writer");
      if (options_.prepares && draw(random, 10) == 0)
        write_in_two_phases(*connection, random, logins);
      else if (options_.plain)
        connection->transact([&](pqxx::work& transaction) { insert(transaction, logins, 1); });
      else
        write_once(*connection, random, logins);
      if (options_.pause_ms > 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(draw(random, options_.pause_ms)));
    } catch (const Error&) {
      if (!options_.tolerant) throw;
      connection.reset();
      ++logins.next;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

WriteLoad::~WriteLoad() {
  stop();
}

void WriteLoad::stop() {
  enough_ = true;
  for (auto& writer : writers_)
    writer.join();
  writers_.clear();
}

std::set<std::int64_t> committed_tokens(db::Connection& connection) {
  std::set<std::int64_t> ids;
  for (const auto& row : connection.run("SELECT id FROM tokens"))
    ids.insert(row[0].as<std::int64_t>());
  return ids;
}

void await_tokens(db::Connection& connection, std::int64_t more) {
  const auto tokens = [&] { return value<std::int64_t>(connection, "SELECT count(*) FROM tokens"); };
  const auto before = tokens();
  if (!eventually([&] { return tokens() >= before + more; }, std::chrono::seconds(120)))
    throw std::runtime_error("the writers do not write");
}

std::int64_t unfinished_work(db::Connection& connection) {
  return value<std::int64_t>(connection,
                             "SELECT (SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL) "
                             "+ (SELECT count(*) FROM mailroom_gaps)");
}

}  // namespace mailroom::test
