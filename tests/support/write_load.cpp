#include "support/write_load.hpp"

#include <random>

namespace mailroom::test {
namespace {

using Random = std::mt19937_64;

int draw(Random& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

void insert(pqxx::work& transaction, const std::string& prefix, int& next, int rows) {
  Connection::execute(transaction,
                      "INSERT INTO accounts (email, login) SELECT $1 || g || '@test.example', $1 || g "
                      "FROM generate_series($2::int, $3::int) g",
                      prefix, next, next + rows - 1);
  next += rows;
}

void hold(Random& random) {
  std::this_thread::sleep_for(std::chrono::milliseconds(draw(random, 150)));
}

struct RollBack {};

/// One transaction of a kind drawn from `random`.
void write_once(Connection& connection, Random& random, const std::string& prefix, int& next) {
  const int kind = draw(random, 20);
  try {
    connection.transact([&](pqxx::work& transaction) {
      insert(transaction, prefix, next, kind < 4 ? 1 + draw(random, 40) : 1);
      if (kind >= 4 && kind < 7) hold(random);
      if (kind >= 7 && kind < 9) {
        Connection::execute(transaction, "SAVEPOINT half");
        insert(transaction, prefix, next, 2);
        Connection::execute(transaction, "ROLLBACK TO half");
        insert(transaction, prefix, next, 1);
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

}  // namespace

WriteLoad::WriteLoad(const TestDatabase& database, int writers, std::uint64_t seed) {
  for (int writer = 0; writer < writers; ++writer) {
    writers_.emplace_back([this, &database, writer, seed] {
      Random random(seed + static_cast<std::uint64_t>(writer));
      const auto connection = database.connect();
      int next = 1;
      while (!enough_)
        write_once(*connection, random, "w" + std::to_string(writer) + "-", next);
    });
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

std::set<std::int64_t> committed_tokens(Connection& connection) {
  std::set<std::int64_t> ids;
  for (const auto& row : connection.run("SELECT id FROM tokens"))
    ids.insert(row[0].as<std::int64_t>());
  return ids;
}

std::int64_t unfinished_work(Connection& connection) {
  return value<std::int64_t>(connection,
                             "SELECT (SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL) "
                             "+ (SELECT count(*) FROM mailroom_holes)");
}

}  // namespace mailroom::test
