#include "audit/queue_facts.hpp"

#include <set>

#include "base/moment.hpp"
#include "db/array_text.hpp"

namespace mailroom {
namespace {

/// How far back the records of a queue go, in microseconds since 1970.
struct Records {
  std::optional<std::int64_t> complete_since{};  ///< nullopt if unknown
  bool pruned = false;                           ///< older records were deleted

  bool are_complete_for(const TokenFacts& token) const {
    if (!token.exists) return !pruned;  // its creation time is an estimate
    // A token is created after the table, perhaps within the same second.
    return complete_since && token.created_at >= *complete_since / microseconds_a_second;
  }
};

/// Returns when the table of batches was last created.
std::optional<std::int64_t> recording_since(const std::vector<SchemaChange>& history) {
  std::optional<std::int64_t> since;
  for (const auto& change : history) {
    if (change.name == "queue_tables" && change.direction == "up") since = change.at;
  }
  return since;
}

/// Records have been pruned if the first id of all queues is missing.
Records read_records(pqxx::transaction_base& transaction, const std::string& queue,
                     const std::vector<SchemaChange>& history) {
  const auto row = Connection::execute(transaction, R"(
SELECT
  (SELECT floor(extract(epoch FROM claimed_at) * 1000000)::bigint FROM mailroom_batches
   WHERE job_type = $1 ORDER BY id LIMIT 1),
  coalesce((SELECT min(id) FROM mailroom_batches), 1) > 1)",
                                       queue)[0];
  Records records{.complete_since = std::nullopt, .pruned = row[1].as<bool>()};
  if (!records.pruned) records.complete_since = recording_since(history);
  if (!records.complete_since && !row[0].is_null()) records.complete_since = row[0].as<std::int64_t>();
  return records;
}

std::vector<std::string> queue_names(pqxx::transaction_base& transaction, const std::string& first) {
  std::vector<std::string> names;
  for (const auto& row :
       Connection::execute(transaction, "SELECT job_type FROM jobs ORDER BY job_type <> $1, job_type", first))
    names.push_back(row[0].c_str());
  return names;
}

std::optional<Skip> find_skip(pqxx::transaction_base& transaction, const std::string& queue,
                              const TokenFacts& token) {
  const auto rows = Connection::execute(
      transaction, R"(
SELECT id, floor(extract(epoch FROM claimed_at) * 1000000)::bigint, skipped_expired, skipped_consumed
FROM mailroom_batches
WHERE job_type = $1 AND id >= $2 AND cursor >= $3 AND claimed_at >= to_timestamp($4::bigint)
ORDER BY id
LIMIT 1)",
      queue, first_batch_since(transaction, token_span(token.id, token.created_at, token.expires_at).since),
      token.id, token.exists ? bounded_moment(token.created_at) : 0);
  if (rows.empty()) return std::nullopt;
  const auto& row = rows[0];
  return Skip{.batch = row[0].as<std::int64_t>(),
              .at = row[1].as<std::int64_t>(),
              .expired = row[2].as<int>(),
              .consumed = row[3].as<int>()};
}

TokenPosition read_position(pqxx::transaction_base& transaction, const std::string& queue,
                            const TokenFacts& token, const Records& records) {
  const auto row = Connection::execute(transaction, R"(
SELECT s.cursor,
  EXISTS (SELECT FROM mailroom_gaps h WHERE h.id = ANY (s.gap_ids) AND h.ids @> $2::bigint)
FROM mailroom_queue_state($1) s)",
                                       queue, token.id)[0];
  TokenPosition position{.queue = queue,
                         .cursor = row[0].as<std::int64_t>(),
                         .in_gap = row[1].as<bool>(),
                         .records_complete = records.are_complete_for(token)};
  if (token.batches.empty() && token.id <= position.cursor && !position.in_gap)
    position.skip = find_skip(transaction, queue, token);
  return position;
}

bool may_be_missed(const TokenFacts& token, const TokenPosition& position) {
  return token.exists && token.batches.empty() && token.id <= position.cursor && !position.in_gap;
}

/// Runs one query for all tokens, or none if no token can be missed.
void mark_missed(pqxx::transaction_base& transaction, const std::string& queue,
                 std::vector<TokenFacts>& tokens) {
  std::vector<std::int64_t> ids;
  for (const auto& token : tokens) {
    if (may_be_missed(token, token.queues.back())) ids.push_back(token.id);
  }
  if (ids.empty()) return;
  std::set<std::int64_t> missed;
  for (const auto& row : Connection::execute(
           transaction, "SELECT id FROM mailroom_missed_tokens($1) m (id) WHERE id = ANY ($2::bigint[])",
           queue, array_text(ids)))
    missed.insert(row[0].as<std::int64_t>());
  for (auto& token : tokens)
    token.queues.back().missed = missed.contains(token.id);
}

}  // namespace

void require_queue(pqxx::transaction_base& transaction, const std::string& queue) {
  if (!queue.empty()) Connection::execute(transaction, "SELECT mailroom_queue_state($1)", queue);
}

void read_token_positions(pqxx::transaction_base& transaction, const std::string& first_queue,
                          const std::vector<SchemaChange>& history, std::vector<TokenFacts>& tokens) {
  for (const auto& queue : queue_names(transaction, first_queue)) {
    const auto records = read_records(transaction, queue, history);
    for (auto& token : tokens)
      token.queues.push_back(read_position(transaction, queue, token, records));
    mark_missed(transaction, queue, tokens);
  }
}

}  // namespace mailroom
