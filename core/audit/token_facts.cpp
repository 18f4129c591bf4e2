// The SQL for a token's position in each queue, and an estimate of the times of a token that is gone.

#include "audit/token_facts.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "db/values.hpp"

namespace mailroom::audit {
namespace {

/// Returns when the table of batches was last created.
std::optional<Moment> recording_since(pqxx::transaction_base& transaction) {
  std::optional<Moment> since;
  for (const auto& change : schema::read_schema_history(transaction)) {
    if (change.name == schema::queue_migration && change.direction == "up") since = change.at;
  }
  return since;
}

/// True if the cursor has passed the token's id, and no batch holds the token.
bool is_passed(const TokenFacts& token, const TokenPosition& position) {
  return token.batches.empty() && token.id <= position.cursor && position.gap == fate::TokenPlace::none;
}

/// Sets `missed` of the last position of each token. Runs one query for all tokens, or none if no token can
/// be missed.
void mark_missed(pqxx::transaction_base& transaction, std::vector<TokenFacts>& tokens) {
  std::vector<std::int64_t> ids;
  for (const auto& token : tokens) {
    if (token.exists && is_passed(token, token.queues.back())) ids.push_back(token.id);
  }
  if (ids.empty()) return;
  const auto missed =
      db::Connection::execute(
          transaction, "SELECT id FROM mailroom_missed_tokens($1) m (id) WHERE id = ANY ($2::bigint[])",
          tokens.front().queues.back().queue, db::array_text(ids))
          .values<std::int64_t>();
  for (auto& token : tokens)
    if (std::ranges::find(missed, token.id) != missed.end()) token.queues.back().missed = true;
}

}  // namespace

TokenFacts read_token(pqxx::transaction_base& transaction, std::int64_t id, Moment now) {
  const auto found = feed::find_tokens(transaction, {id});
  if (!found.empty()) return {found.front()};
  // The sequence may be behind the cursors after tokens were truncated or restored.
  const auto newest = db::Connection::execute(transaction, R"(
SELECT greatest(
  (SELECT id FROM mailroom_last_drawn_token()),
  (SELECT max(s.cursor) FROM jobs j, LATERAL mailroom_queue_state(j.job_type) s)))")
                          .value<std::int64_t>();
  if (id > newest) {
    throw Error(ExitCode::unusable, fmt::format("there is no token {}", id),
                newest > 0 ? fmt::format("the newest token is {}", newest)
                           : std::string("no token has been created yet"));
  }
  const auto row = db::Connection::execute(transaction, R"(
SELECT (SELECT created_at FROM tokens WHERE id < $1 ORDER BY id DESC LIMIT 1) AS before,
  (SELECT created_at FROM tokens WHERE id > $1 ORDER BY id LIMIT 1) AS after)",
                                           id)[0];
  TokenFacts token{{.id = id, .expires_at = now}, false};
  token.created_at = row.optional_moment<std::chrono::seconds>("before").value_or(Moment());
  if (const auto next = row.optional_moment<std::chrono::seconds>("after"))
    token.expires_at = *next + std::chrono::days(1);
  return token;
}

void read_token_positions(pqxx::transaction_base& transaction, const std::vector<std::string>& first,
                          std::vector<TokenFacts>& tokens) {
  std::vector<std::int64_t> ids;
  for (const auto& token : tokens)
    ids.push_back(token.id);
  const auto recorded_since = recording_since(transaction);
  // Records have been pruned if the first id of all queues is missing.
  const auto rows = db::Connection::execute(transaction,
                                            fmt::format(R"(
SELECT j.job_type, s.cursor,
  (SELECT bool_or(h.horizon = '0') FROM mailroom_gaps h WHERE h.id = ANY (s.gap_ids) AND h.ids @> t.id) AS is_replayed,
  (SELECT {} FROM mailroom_batches b WHERE b.queue = j.job_type ORDER BY b.id LIMIT 1) AS since_us,
  coalesce((SELECT min(id) FROM mailroom_batches), 1) > 1 AS is_pruned,
  coalesce(mailroom_takes(mailroom_queue_actions(j.job_type), (SELECT action FROM tokens WHERE tokens.id = t.id)), true) AS takes
FROM jobs j, LATERAL mailroom_queue_state(j.job_type) s, unnest($1::bigint[]) WITH ORDINALITY t (id, n)
ORDER BY j.job_type, t.n)",
                                                        db::microseconds_sql("claimed_at")),
                                            db::array_text(ids));
  auto token = tokens.begin();
  for (const auto& row : rows) {
    const bool is_pruned = row.flag("is_pruned");
    auto since = is_pruned ? std::nullopt : recorded_since;
    if (!since) since = row.optional_moment<std::chrono::microseconds>("since_us");
    TokenPosition position{.queue = row.text("job_type"),
                           .cursor = row.number("cursor"),
                           .gap = row.is_null("is_replayed") ? fate::TokenPlace::none
                                  : row.flag("is_replayed")  ? fate::TokenPlace::in_replay
                                                             : fate::TokenPlace::in_gap,
                           .takes = row.flag("takes")};
    // The creation time of a deleted token is an estimate. A token is created after the table, perhaps within
    // the same second.
    position.records_complete =
        token->exists ? since && token->created_at >= std::chrono::floor<std::chrono::seconds>(*since)
                      : !is_pruned;
    if (position.takes && is_passed(*token, position))
      position.skip =
          queue::find_first_claim(transaction, position.queue,
                                  queue::token_span(token->id, token->created_at, token->expires_at).since,
                                  token->exists ? token->created_at : Moment(), token->id);
    token->queues.push_back(std::move(position));
    if (++token != tokens.end()) continue;
    mark_missed(transaction, tokens);
    token = tokens.begin();
  }
  const auto place = [&](const TokenPosition& position) {
    return std::find(first.begin(), first.end(), position.queue) - first.begin();
  };
  for (auto& each : tokens) {
    std::erase_if(each.queues, [](const TokenPosition& position) { return !position.takes; });
    std::stable_sort(each.queues.begin(), each.queues.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
  }
}

}  // namespace mailroom::audit
