// Prunes in a loop while two collectors run and other sessions insert, expire and extend tokens. No due token
// is removed, none is lost or repeated, and every remaining token still has its record.

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "prune/pruner.hpp"
#include "support/catch.hpp"
#include "support/test_collector.hpp"
#include "support/write_load.hpp"

namespace mailroom::test::prune_beside_collectors_test {
namespace {

using Random = std::mt19937_64;
using IdSet = std::set<std::int64_t>;

struct RollBack {};

/// Waits while the collectors or the pruner are behind, however slow the machine is; returns whether it
/// waited. A prune comes to the batches only when no token is left to remove.
bool waited_for_others(db::Connection& connection) {
  const bool is_behind = value<bool>(connection, R"(
SELECT coalesce((SELECT max(id) FROM tokens), 0) > last_seq + 500
  OR (SELECT count(*) > 500 FROM tokens WHERE expires_at < extract(epoch FROM now())) FROM jobs)");
  if (is_behind) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return is_behind;
}

/// Inserts accounts: one, many, in a transaction held open, or in one that is rolled back.
void write_once(db::Connection& connection, Random& random, const std::string& prefix, int& next) {
  if (waited_for_others(connection)) return;
  const auto kind = random() % 10;
  const int rows = kind < 2 ? 30 : 1;
  try {
    connection.transact([&](pqxx::work& transaction) {
      db::Connection::execute(
          transaction,
          "INSERT INTO accounts (email, login) SELECT $1 || g || '@test.example', $1 || g "
          "FROM generate_series($2::int, $3::int) g",
          prefix, next, next + rows - 1);
      next += rows;
      if (kind > 6) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
      if (kind > 8) throw RollBack{};
    });
  } catch (const RollBack&) {
    return;
  }
}

/// Expires 50 of 150 consecutive tokens long ago, few before they were emitted, and makes batches old.
void end_some(db::Connection& connection) {
  if (waited_for_others(connection)) return;
  connection.run(
      "UPDATE tokens SET expires_at = expires_at - 86400 * 31 WHERE id / 50 % 3 = 0 "
      "AND random() < CASE WHEN id <= (SELECT last_seq FROM jobs) THEN 0.5 ELSE 0.01 END "
      "AND expires_at BETWEEN extract(epoch FROM now()) AND extract(epoch FROM now()) + 1000");
  connection.run(
      "UPDATE mailroom_batches SET emitted_at = emitted_at - interval '31 days' "
      "WHERE emitted_at > now() - interval '1 day' AND random() < 0.5");
}

/// Makes some expired tokens due again, which must then not be removed.
void prolong_some(db::Connection& connection, IdSet& prolonged) {
  const auto rows = connection.run(
      "UPDATE tokens SET expires_at = extract(epoch FROM now()) + 9000 WHERE id IN (SELECT id FROM tokens "
      "WHERE id / 50 % 3 = 0 AND expires_at < extract(epoch FROM now()) ORDER BY random() LIMIT 1) "
      "AND expires_at < extract(epoch FROM now()) RETURNING id");
  for (const auto& row : rows)
    prolonged.insert(row[0].as<std::int64_t>());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

prune::PruneSummary prune_once(db::Connection& connection) {
  return prune::Pruner(connection,
                       {.records = std::chrono::hours(24 * 30), .contents = std::chrono::hours(24 * 30)}, 20)
      .remove({.actor = "test", .reason = ""}, [](const auto&) { return true; });
}

/// Repeats `work` on its own connection until `enough`.
template <typename Work>
std::thread again(const std::atomic<bool>& enough, const TestDatabase& database, Work work) {
  return std::thread([&enough, &database, work = std::move(work)]() mutable {
    auto connection = database.connect();
    while (!enough)
      work(*connection);
  });
}

IdSet ids(db::Connection& connection, const std::string& sql) {
  IdSet found;
  for (const auto& row : connection.run(sql))
    found.insert(row[0].as<std::int64_t>());
  return found;
}

std::map<std::int64_t, int> all_emitted(const TestCollector& first, const TestCollector& second) {
  auto all = emitted_ids(first.output());
  for (const auto& [id, times] : emitted_ids(second.output()))
    all[id] += times;
  return all;
}

/// Records the id of every token that was ever committed.
void keep_ids(db::Connection& connection) {
  connection.run("CREATE TABLE made (id bigint PRIMARY KEY)");
  connection.run(
      "CREATE FUNCTION keep_id() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN INSERT INTO made VALUES (NEW.id); RETURN NULL; END $$");
  connection.run("CREATE TRIGGER keep_id AFTER INSERT ON tokens FOR EACH ROW EXECUTE FUNCTION keep_id()");
}

/// Violations, by count.
struct Tally {
  int due_and_gone = 0;
  int prolonged_and_gone = 0;
  int repeated = 0;
  int strange = 0;
  int unrecorded = 0;  ///< in the table, emitted, and in no batch's record
};

Tally tally(db::Connection& connection, const IdSet& due, const IdSet& prolonged,
            const std::map<std::int64_t, int>& emitted) {
  const auto made = ids(connection, "SELECT id FROM made");
  const auto left = ids(connection, "SELECT id FROM tokens");
  const auto recorded = ids(connection,
                            "SELECT t.id FROM mailroom_batches b, unnest(b.ids) g, "
                            "LATERAL generate_series(lower(g), upper(g) - 1) t (id)");
  Tally result;
  for (const auto id : due)
    result.due_and_gone += left.contains(id) ? 0 : 1;
  for (const auto id : prolonged)
    result.prolonged_and_gone += left.contains(id) ? 0 : 1;
  for (const auto& [id, times] : emitted) {
    result.repeated += times - 1;
    result.strange += made.contains(id) ? 0 : 1;
    result.unrecorded += left.contains(id) && !recorded.contains(id) ? 1 : 0;
  }
  return result;
}

/// Six threads insert, one expires, one extends, and one prunes.
struct Bustle {
  IdSet prolonged;
  std::atomic<std::size_t> prolonged_so_far{0};
  std::atomic<std::int64_t> pruned_tokens{0};
  std::atomic<std::int64_t> pruned_batches{0};

  /// The test is meaningful only if enough was pruned.
  bool had_much_to_do() const {
    return pruned_tokens > 1000 && pruned_batches > 100 && prolonged_so_far > 100;
  }

  void run(const TestDatabase& database) {
    std::atomic<bool> enough{false};
    std::vector<std::thread> threads;
    for (std::uint64_t writer = 0; writer < 6; ++writer) {
      threads.push_back(
          again(enough, database,
                [random = Random(writer), next = 1, prefix = "w" + std::to_string(writer) + "-"](
                    db::Connection& session) mutable { write_once(session, random, prefix, next); }));
    }
    threads.push_back(again(enough, database, end_some));
    threads.push_back(again(enough, database, [&](db::Connection& session) {
      prolong_some(session, prolonged);
      prolonged_so_far = prolonged.size();
    }));
    threads.push_back(again(enough, database, [&](db::Connection& /*session*/) {
      const auto done = prune_once(*database.connect());
      pruned_tokens += done.tokens;
      pruned_batches += done.batches;
    }));
    eventually([&] { return had_much_to_do(); }, std::chrono::seconds(300));
    enough = true;
    for (auto& thread : threads)
      thread.join();
  }
};

}  // namespace

TEST_CASE("pruning beside collectors removes no due token, and loses and repeats none") {
  TestDatabase database;
  const auto connection = database.connect();
  keep_ids(*connection);
  const std::vector<std::string> options{"--format", "jsonl",           "--batch-limit",
                                         "10",       "--batch-timeout", "50ms"};
  TestCollector first(database, options);
  TestCollector second(database, options);
  REQUIRE(first.connected());
  REQUIRE(second.connected());
  Bustle bustle;
  bustle.run(database);

  const auto due = ids(*connection, "SELECT id FROM made WHERE id / 50 % 3 <> 0");
  const bool complete = eventually([&] {
    const auto emitted = all_emitted(first, second);
    return std::all_of(due.begin(), due.end(), [&](auto id) { return emitted.contains(id); });
  });
  const bool drained = eventually([&] { return unfinished_work(*connection) == 0; });
  CHECK(first.stop() == 0);
  CHECK(second.stop() == 0);
  prune_once(*database.connect());

  const auto result = tally(*connection, due, bustle.prolonged, all_emitted(first, second));
  CAPTURE(bustle.prolonged.size(), bustle.pruned_tokens.load(), bustle.pruned_batches.load(), first.log(),
          second.log());
  CHECK(complete);
  CHECK(drained);
  CHECK(result.due_and_gone == 0);
  CHECK(result.prolonged_and_gone == 0);
  CHECK(result.repeated == 0);
  CHECK(result.strange == 0);
  CHECK(result.unrecorded == 0);
  CHECK(bustle.had_much_to_do());
}

}  // namespace mailroom::test::prune_beside_collectors_test
