// Compares the usual claim, which takes fewer statements, with one that finds every case unusual.

#include <fmt/format.h>
#include <random>
#include <utility>

#include "support/catch.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::usual_claim_test {
namespace {

/// Draws a random state of a queue, and a random request of a collector.
class Situation {
 public:
  explicit Situation(std::mt19937& random, int own_pid, int living_pid)
      : random_(random), own_pid_(own_pid), living_pid_(living_pid) {}

  /// Tokens up to 60, most of them due and without a gap; the cursor is somewhere among them.
  void put(db::Connection& connection) {
    connection.transact([&](pqxx::work& transaction) {
      const auto run = [&](const std::string& sql) { db::Connection::execute(transaction, sql); };
      run("SET LOCAL session_replication_role = replica");
      run("TRUNCATE tokens, mailroom_batches, mailroom_gaps, mailroom_deliveries, mailroom_queues RESTART IDENTITY");
      actions_ = one_in(3) ? "'{activation}'" : "NULL";
      run("INSERT INTO mailroom_queues (name, actions) VALUES ('mailroom', " + actions_ + ")");
      run("INSERT INTO tokens (id, action, account, expires_at, consumed_at) VALUES " + tokens());
      run(fmt::format("SELECT setval('tokens_id_seq', {})", one_in(6) ? 1 + below(60) : 60));
      run(fmt::format("UPDATE jobs SET last_seq = {}", below(20)));
      put_batches(run);
      if (one_in(8)) put_deliveries(run);
    });
  }

  /// The arguments of mailroom_claim from p_queue on, its receipt, the batch that the session has open beside
  /// it, and the actions of the queue.
  struct Request {
    std::string arguments;
    std::string receipt;
    std::string held;
    std::string actions;
  };
  Request request() {
    static const int limits[] = {1, 1, 3, 20, 150, 999, 1000};
    std::string receipt = "NULL";
    std::string held = "NULL";
    if (is_open_ && one_in(2)) {
      held = std::to_string(one_in(8) ? 1 : newest_);
      if (oldest_open_.first > 0 && !one_in(8))
        receipt = fmt::format("ROW({}, {}, 1, 1, 0, 0, 0, '{{}}', NULL, NULL, NULL)::mailroom_receipt",
                              oldest_open_.first, oldest_open_.second);
    } else if (is_open_ && !one_in(8))
      receipt = fmt::format("ROW({}, {}, 1, 1, 0, 0, 0, '{}', NULL, NULL, NULL)::mailroom_receipt", newest_,
                            attempts_ + (one_in(8) ? 1 : 0), one_in(3) ? "{[30,31)}" : "{}");
    else if (newest_ > 0 && one_in(4))
      receipt = fmt::format("ROW({}, 1, 2, 0, 0, 0, 0, '{{}}', NULL, NULL, NULL)::mailroom_receipt",
                            1 + below(newest_));
    return {.arguments = fmt::format("'mailroom', {}, {}, {}, {}, {}", limits[below(7)], !one_in(3),
                                     !one_in(3), one_in(3), one_in(2)),
            .receipt = receipt,
            .held = held,
            .actions = actions_};
  }

 private:
  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  bool one_in(int n) { return below(n) == 0; }

  /// Deferred tokens below the cursor; the time of some has come.
  template <typename Run>
  void put_deliveries(const Run& run) {
    run(
        fmt::format("INSERT INTO mailroom_deliveries (queue, token, state, batch, not_before) "
                    "SELECT 'mailroom', x, 'deferred', 0, clock_timestamp() + {} * interval '1 hour' "
                    "FROM generate_series(1, {}) x",
                    one_in(2) ? -1 : 1, 1 + below(5)));
  }

  std::string tokens() {
    const bool mixed = one_in(3);
    std::string rows = "(1, 'activation', 1, 4000000000, NULL)";
    for (int id = 2; id <= 60; ++id) {
      if (one_in(mixed ? 10 : 200)) continue;
      rows += fmt::format(
          ", ({}, '{}', 1, {}, {})", id, mixed && one_in(4) ? "password_recovery" : "activation",
          mixed && one_in(8) ? 1700000000 : 4000000000, mixed && one_in(8) ? "1700000000" : "NULL");
    }
    return rows;
  }

  template <typename Run>
  void put_batches(const Run& run) {
    newest_ = below(4);
    is_open_ = false;
    oldest_open_ = {};
    if (newest_ == 0) return;
    const int cursor = one_in(5) ? 60 : below(60);
    const bool has_gap = one_in(4);
    if (has_gap)
      run(fmt::format("INSERT INTO mailroom_gaps (ids, horizon) VALUES ('{{[{},{})}}', '3')", cursor / 2,
                      cursor + 1));
    int open_from = newest_;
    for (int id = newest_; id >= 1; --id) {
      const bool is_open = id == newest_ ? (is_open_ = !one_in(3)) : one_in(3);
      if (is_open) open_from = id;
      const int attempts = 1 + below(2);
      if (id == newest_) attempts_ = attempts;
      if (is_open && id < newest_) oldest_open_ = {id, attempts};
      const int collectors[] = {own_pid_, living_pid_, 1};
      run(fmt::format(
          "INSERT INTO mailroom_batches (id, queue, ids, ids_mask, collector, attempts, emitted_at, "
          "cursor, open_from, gap_ids) OVERRIDING SYSTEM VALUE "
          "VALUES ({}, 'mailroom', '{{[30,35)}}', {}, {}, {}, {}, {}, {}, '{}')",
          id, id % 3 == 0 ? "B'10110'" : "NULL", collectors[id == newest_ ? 0 : below(3)], attempts,
          is_open ? "NULL" : "now()", cursor, one_in(6) ? 1 : open_from, has_gap ? "{1}" : "{}"));
    }
    run(fmt::format("UPDATE mailroom_batches SET open_from = least(open_from, {}) WHERE id = {}", open_from,
                    newest_));
    run(fmt::format("SELECT setval('mailroom_batches_id_seq', {})", newest_));
  }

  std::mt19937& random_;
  int own_pid_;
  int living_pid_;
  std::string actions_ = "NULL";
  int newest_ = 0;
  int attempts_ = 1;
  bool is_open_ = false;
  std::pair<int, int> oldest_open_{};  ///< of the batches before the newest: id and attempts
};

/// The outcome without sequence values and times; batches are numbered by their order.
constexpr const char* outcome_sql = R"(
WITH r AS (SELECT *, row_number() OVER (ORDER BY id) AS place FROM mailroom_batches)
SELECT concat_ws(E'\n',
  (SELECT place FROM r WHERE r.id = $1),
  (SELECT string_agg(((to_jsonb(r) - '{id,claimed_at,emitted_at,dead_at,open_from,gap_ids,ids_mask}'::text[])
     || jsonb_build_object('ids', mailroom_batch_ids(ids, ids_mask), 'emitted_at', emitted_at IS NOT NULL, 'dead', dead_at IS NOT NULL,
                           'open_from', (SELECT o.place FROM r o WHERE o.id = r.open_from),
                           'gaps', cardinality(gap_ids)))::text, E'\n' ORDER BY id) FROM r),
  (SELECT string_agg(concat_ws(' ', ids, pending), E'\n' ORDER BY id) FROM mailroom_gaps),
  (SELECT string_agg(concat_ws(' ', token, state, not_before IS NULL), E'\n' ORDER BY token) FROM mailroom_deliveries),
  (SELECT last_seq FROM jobs)))";

struct Played {
  std::string outcome;
  bool by_the_long_way = false;
};

Played play(db::Connection& connection, const std::string& call) {
  Played played;
  try {
    connection.dry_run([&](pqxx::work& transaction) {
      const auto run = [&](const auto&... sql) { return db::Connection::execute(transaction, sql...); };
      // Calls of this session so far; a rollback does not reset the count.
      const auto long_ways = [&] {
        return run("SELECT coalesce(sum(calls), 0) FROM pg_stat_xact_user_functions "
                   "WHERE funcname = 'mailroom_claim_any'")[0][0]
            .template as<std::int64_t>();
      };
      const auto before = long_ways();
      const auto row =
          run("SELECT batch, to_jsonb(c) - '{batch,size,wait,messages}'::text[], "
              "CASE WHEN batch IS NOT NULL THEN size END FROM " +
              call + " c")[0];
      const auto state = run(outcome_sql, row[0].is_null() ? nullptr : row[0].c_str())[0];
      played.outcome = fmt::format("{} size {}\n{}", row[1].c_str(), row[2].c_str(), state[0].c_str());
      played.by_the_long_way = long_ways() > before;
    });
  } catch (const db::DatabaseError& error) {
    played.outcome = error.sqlstate();
    played.by_the_long_way = true;
  }
  return played;
}

/// Makes mailroom_long_claim(): mailroom_claim(), but it finds no case usual.
void make_long_claim(db::Connection& connection) {
  auto source = value<std::string>(connection, "SELECT pg_get_functiondef('mailroom_claim'::regproc)");
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"mailroom_claim(", "mailroom_long_claim("},
        {"v_queue.is_usual := v_queue.is_usual AND", "v_queue.is_usual := false AND"}}) {
    const auto at = source.find(from);
    REQUIRE(at != std::string::npos);
    source.replace(at, from.size(), to);
  }
  connection.run(source);
}

}  // namespace

TEST_CASE("the usual claim has the same outcome as the claim for all cases, and is used where possible") {
  const auto seed = GENERATE(range(1U, 9U));
  CAPTURE(seed);
  std::mt19937 random(seed);
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  make_long_claim(*connection);
  connection->run("SET track_functions = 'all'");
  const auto other = database.connect();
  const auto attach_to = [](db::Connection& session) {
    return value<int>(session, "SELECT mailroom_attach('mailroom')");
  };
  const auto own_pid = attach_to(*connection);
  Situation situation(random, own_pid, attach_to(*other));

  int short_ways = 0;
  int long_ways = 0;
  int held_short_ways = 0;
  for (int i = 0; i < 60; ++i) {
    situation.put(*connection);
    const auto request = situation.request();
    CAPTURE(i, request.arguments, request.receipt, request.held, request.actions);
    const auto arguments =
        fmt::format("({}, {}, NULL, {}, {})", own_pid, request.arguments, request.receipt, request.held);
    const auto usual = play(*connection, "mailroom_claim" + arguments);
    const auto any = play(*connection, "mailroom_long_claim" + arguments);
    CHECK(usual.outcome == any.outcome);
    ++(usual.by_the_long_way ? long_ways : short_ways);
    held_short_ways += !usual.by_the_long_way && request.held != "NULL" ? 1 : 0;
  }
  CHECK(short_ways >= 6);
  CHECK(held_short_ways >= 1);
  CHECK(long_ways >= 20);
}

}  // namespace mailroom::test::usual_claim_test
