// One INSERT for each step, as an application writes it.

#include "simulation/simulated_messages.hpp"

#include <algorithm>
#include <thread>

#include "simulation/simulated_rows.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds longest_sleep{50};

constexpr const char* insert_sql = R"(
INSERT INTO mailroom_messages (recipients, subject, text, reference, idempotency_key)
SELECT ARRAY[s.name || $2::text], 'Simulated message ' || n, repeat('Simulated text. ', 125), s.name, s.name
FROM generate_series($3::bigint, $4::bigint) n, LATERAL (SELECT $1::text || 'm' || n AS name) s
ON CONFLICT DO NOTHING)";

constexpr const char* remove_sql = R"(
WITH step AS MATERIALIZED (
  SELECT id FROM mailroom_messages
  WHERE id > $1::bigint AND starts_with(reference, $2::text) AND right(recipients[1], length($3::text)) = $3::text
  ORDER BY id
  LIMIT $4::bigint),
made AS (DELETE FROM tokens t USING step s WHERE t.message = s.id),
waiting AS (DELETE FROM mailroom_schedule w USING step s WHERE w.message = s.id),
gone AS (DELETE FROM mailroom_messages m USING step s WHERE m.id = s.id RETURNING m.id)
SELECT (SELECT max(id) FROM step), (SELECT count(*) FROM gone))";

}  // namespace

MessageTally send_messages(LastingConnection& connection, const MessageRun& run,
                           const std::function<bool(std::int64_t)>& go_on) {
  MessageTally tally;
  const auto start = steady_now();
  const auto prefix = simulated_prefix(run.seed);
  while (tally.messages < run.messages && go_on(tally.messages)) {
    const auto first = tally.messages + 1;
    if (run.rate) {
      const auto left = due_at(start, first, *run.rate) - steady_now();
      if (left > TimePoint::duration::zero()) {
        std::this_thread::sleep_for(std::min<TimePoint::duration>(left, longest_sleep));
        continue;
      }
    }
    const auto last = std::min(run.messages, run.rate ? first : first + simulation_step - 1);
    const auto began = steady_now();
    connection.run([&](Connection& session) {
      return session.run(insert_sql, prefix, std::string(simulated_email_end), first, last);
    });
    tally.latency.add(std::chrono::floor<std::chrono::microseconds>(steady_now() - began));
    tally.messages = last;
  }
  tally.seconds = std::chrono::duration<double>(steady_now() - start).count();
  return tally;
}

std::int64_t remove_simulated_messages(LastingConnection& connection, const std::string& prefix,
                                       const std::function<bool(std::int64_t)>& go_on) {
  std::int64_t removed = 0;
  std::int64_t passed = 0;
  do {
    const auto rows = connection.run([&](Connection& session) {
      return session.run(remove_sql, passed, prefix, std::string(simulated_email_end), simulation_step);
    });
    if (rows[0][0].is_null()) return removed;
    passed = rows[0][0].as<std::int64_t>();
    removed += rows[0][1].as<std::int64_t>();
  } while (go_on(removed));
  return removed;
}

}  // namespace mailroom
