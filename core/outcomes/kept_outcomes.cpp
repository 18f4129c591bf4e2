// A session lock names the reader. Rows are read by their id, and whatever commits late is simply there
// later: no cursor can pass it.

#include "outcomes/kept_outcomes.hpp"

#include "db/values.hpp"

namespace mailroom {

KeptOutcomes::KeptOutcomes(Connection& connection) : connection_(connection) {
  connection_.run("SELECT mailroom_want_outcomes(true)");
}

bool KeptOutcomes::take_over() {
  return connection_.run("SELECT pg_try_advisory_lock(mailroom_lock_class('outcomes'), 0)")[0][0].as<bool>();
}

std::vector<KeptOutcome> KeptOutcomes::due(int limit) {
  std::vector<KeptOutcome> outcomes;
  for (const auto& row : connection_.run(R"(
SELECT o.id, o.token, o.queue, o.state, o.attempts, jsonb_strip_nulls(jsonb_build_object(
  'id', o.id, 'at', to_char(o.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'state', o.state, 'queue', o.queue, 'token', o.token,
  'action', t.action, 'message', t.message, 'account', t.account, 'recipient', coalesce(
    o.address, mailroom_address((m.recipients || m.cc || m.bcc)[t.recipient]), a.email),
  'reference', m.reference, 'idempotency_key', m.idempotency_key, 'code', o.code, 'reply', o.reply))
FROM mailroom_outcomes o LEFT JOIN tokens t ON t.id = o.token LEFT JOIN mailroom_messages m ON m.id = t.message
LEFT JOIN accounts a ON a.id = t.account
WHERE o.not_before IS NULL OR o.not_before <= clock_timestamp() ORDER BY o.id LIMIT $1)",
                                         limit)) {
    outcomes.push_back({.id = row[0].as<std::int64_t>(),
                        .token = row[1].as<std::int64_t>(),
                        .queue = row[2].c_str(),
                        .state = row[3].c_str(),
                        .attempts = row[4].as<int>(),
                        .line = row[5].c_str()});
  }
  return outcomes;
}

void KeptOutcomes::remove(const std::vector<std::int64_t>& ids) {
  std::vector<std::string> texts;
  for (const auto id : ids)
    texts.push_back(std::to_string(id));
  connection_.run("DELETE FROM mailroom_outcomes WHERE id = ANY ($1::bigint[])", array_text(texts));
}

void KeptOutcomes::put_off(std::int64_t id, Milliseconds wait, bool counts) {
  connection_.run(
      "UPDATE mailroom_outcomes SET not_before = clock_timestamp() + $2::bigint * interval '1 ms', attempts = attempts + $3::int "
      "WHERE id = $1",
      id, wait.count(), counts ? 1 : 0);
}

std::int64_t KeptOutcomes::end(Connection& connection) {
  return connection.run("SELECT mailroom_want_outcomes(false)")[0][0].as<std::int64_t>();
}

}  // namespace mailroom
