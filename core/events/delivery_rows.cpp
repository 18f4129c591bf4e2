// Reads mailroom_deliveries.

#include "db/time_sql.hpp"
#include "events/event.hpp"

namespace mailroom {
namespace {

// A row for each outcome, the present one last. Each range of ids is a condition of the primary key.
const std::string deliveries_sql = fmt::format(R"(
SELECT d.queue, d.token, d.attempts, d.unknowns, d.batch, {}, {}, {}, e.state, e.sink, e.code, e.reply
FROM unnest($1::int8multirange) u (g) CROSS JOIN jobs j,
  LATERAL (SELECT * FROM mailroom_deliveries m
           WHERE m.queue = j.job_type AND m.token >= lower(u.g) AND m.token < upper(u.g)
           ORDER BY m.token LIMIT 2000000000) d,
  LATERAL (
    SELECT n, (a->>'at')::timestamptz, a->>'state', a->>'sink', (a->>'code')::integer, a->>'reply'
    FROM jsonb_array_elements(d.earlier_attempts) WITH ORDINALITY AS earlier (a, n)
    UNION ALL
    SELECT NULL, d.last_at, d.state, d.sink, d.code, d.reply) e (n, at, state, sink, code, reply)
ORDER BY d.token, d.queue, e.n NULLS LAST)",
                                               microseconds_sql("d.not_before"),
                                               microseconds_sql("d.accepted_at"), microseconds_sql("e.at"));

template <typename Row>
DeliveryRecord read_record(const Row& row) {
  return {.token = row[1].template as<std::int64_t>(),
          .queue = row[0].c_str(),
          .counted = row[2].template as<int>(),
          .unknowns = row[3].template as<int>(),
          .batch = row[4].template as<std::int64_t>(),
          .not_before = optional_moment_in<std::chrono::microseconds>(row[5]),
          .accepted_at = optional_moment_in<std::chrono::microseconds>(row[6])};
}

template <typename Row>
DeliveryAttempt read_attempt(const Row& row) {
  return {.token = {.id = row[1].template as<std::int64_t>()},
          .queue = row[0].c_str(),
          .at = moment_in<std::chrono::microseconds>(row[7]),
          .state = row[8].c_str(),
          .sink = row[9].c_str(),
          .code = row[10].is_null() ? 0 : row[10].template as<int>(),
          .reply = row[11].c_str()};
}

}  // namespace

std::vector<DeliveryRecord> find_deliveries(pqxx::transaction_base& transaction,
                                            const std::vector<IdRange>& tokens) {
  std::vector<DeliveryRecord> deliveries;
  for (const auto& row : Connection::execute(transaction, deliveries_sql, multirange_of(tokens))) {
    auto attempt = read_attempt(row);
    if (deliveries.empty() || deliveries.back().token != attempt.token.id ||
        deliveries.back().queue != attempt.queue)
      deliveries.push_back(read_record(row));
    deliveries.back().attempts.push_back(std::move(attempt));
  }
  return deliveries;
}

}  // namespace mailroom
