// The oracle of the queue protocol under concurrent writers: committed is emitted, emitted is committed,
// nothing twice, nothing left open.

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "support/catch.hpp"
#include "support/test_collector.hpp"

using namespace mailroom;
using namespace mailroom::test;

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

/// One transaction of a kind drawn from `random`: single rows, many rows, held open, rolled back, savepoints.
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

void write_until(const std::atomic<bool>& enough, const TestDatabase& database, int writer,
                 std::uint64_t seed) {
  Random random(seed + static_cast<std::uint64_t>(writer));
  const auto connection = database.connect();
  int next = 1;
  while (!enough)
    write_once(*connection, random, "w" + std::to_string(writer) + "-", next);
}

std::set<std::int64_t> committed_ids(Connection& connection) {
  std::set<std::int64_t> ids;
  for (const auto& row : connection.run("SELECT id FROM tokens"))
    ids.insert(row[0].as<std::int64_t>());
  return ids;
}

std::int64_t unfinished(Connection& connection) {
  return value<std::int64_t>(connection,
                             "SELECT (SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL) "
                             "+ (SELECT count(*) FROM mailroom_holes)");
}

struct Tally {
  std::size_t committed = 0;
  std::size_t lost = 0;
  std::size_t strange = 0;
  int repeated = 0;
};

Tally tally(const std::set<std::int64_t>& committed, const std::vector<std::string>& outputs) {
  Tally result{.committed = committed.size()};
  std::map<std::int64_t, int> emitted;
  for (const auto& output : outputs) {
    for (const auto& [id, times] : emitted_ids(output))
      emitted[id] += times;
  }
  for (const auto id : committed)
    result.lost += emitted.count(id) == 0 ? 1 : 0;
  for (const auto& [id, times] : emitted) {
    result.strange += committed.count(id) == 0 ? 1 : 0;
    result.repeated += times - 1;
  }
  return result;
}

}  // namespace

TEST_CASE("two collectors under twelve writers lose nothing and repeat nothing") {
  const std::uint64_t seed = GENERATE(1U, 2U);
  const int limit = seed == 1 ? 10 : 100;
  TestDatabase database;
  const auto connection = database.connect();
  const std::vector<std::string> options{"--format",        "jsonl", "--batch-limit", std::to_string(limit),
                                         "--batch-timeout", "100ms"};
  TestCollector first(database, options);
  TestCollector second(database, options);
  REQUIRE(first.connected());
  REQUIRE(second.connected());

  std::atomic<bool> enough{false};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 12; ++writer) {
    writers.emplace_back([&, writer] { write_until(enough, database, writer, seed * 1000); });
  }
  std::this_thread::sleep_for(std::chrono::seconds(8));
  enough = true;
  for (auto& writer : writers)
    writer.join();

  const auto committed = committed_ids(*connection);
  const auto all_out = [&] {
    return emitted_ids(first.output()).size() + emitted_ids(second.output()).size() >= committed.size();
  };
  const bool complete = eventually(all_out);
  const bool settled = eventually([&] { return unfinished(*connection) == 0; });
  CHECK(first.stop() == 0);
  CHECK(second.stop() == 0);

  const auto result = tally(committed, {first.output(), second.output()});
  CAPTURE(seed, limit, result.committed, result.lost, result.strange, result.repeated, first.log(),
          second.log());
  CHECK(result.committed > 1000);
  CHECK(result.lost == 0);
  CHECK(result.strange == 0);
  CHECK(result.repeated == 0);
  CHECK(complete);
  CHECK(settled);
  CHECK_FALSE(first.output().empty());
  CHECK_FALSE(second.output().empty());
}
