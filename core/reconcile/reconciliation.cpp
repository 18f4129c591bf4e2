// Runs the stages in one snapshot, and checks that each token was counted exactly once.

#include "reconcile/reconciliation.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <set>

#include "audit/token_facts.hpp"
#include "reconcile/queue_ledger.hpp"
#include "reconcile/recorded_ranges.hpp"
#include "reconcile/stretches.hpp"
#include "status/queue_sessions.hpp"

namespace mailroom::reconcile {
namespace {

/// The tokens of the period: where their ids are, and how many there are of each action.
struct PeriodTokens {
  std::vector<selection::IdRange> ids{};
  std::map<std::string, std::int64_t> counts{};
};

PeriodTokens read_period_tokens(pqxx::transaction_base& transaction, TokenCounter::Scope scope) {
  constexpr int block_bits = 16;
  constexpr std::int64_t block_size = std::int64_t{1} << block_bits;
  const auto sql = fmt::format(R"(
SELECT id >> {} AS block, action, count(*) FROM tokens WHERE created_at >= $1::bigint AND created_at < $2::bigint
GROUP BY 1, 2)",
                               block_bits);
  // There is a group for 65,536 ids, but the planner expects one for each id, and would sort all tokens on
  // disk.
  db::Connection::execute(transaction, "SET LOCAL enable_sort = off");
  const auto rows = db::Connection::execute(transaction, sql, scope.since, scope.until);
  db::Connection::execute(transaction, "SET LOCAL enable_sort = on");
  PeriodTokens tokens;
  std::set<std::int64_t> blocks;
  for (const auto& row : rows) {
    blocks.insert(row.number("block"));
    tokens.counts[row.text("action")] += row.number("count");
  }
  for (const auto block : blocks) {
    const auto first = block * block_size;
    if (tokens.ids.empty() || tokens.ids.back().end != first)
      tokens.ids.push_back({.first = first, .end = first});
    tokens.ids.back().end += block_size;
  }
  return tokens;
}

/// Two ways of counting must agree: otherwise a token would have no outcome, or two.
void require_complete(const PeriodTokens& tokens, const ClaimRecord& record, const QueueLedger& ledger) {
  for (const auto& [action, count] : tokens.counts) {
    const auto found = ledger.found().find(action);
    const auto judged = found == ledger.found().end() ? 0 : found->second;
    if (!record.takes(action) || judged == count) continue;
    throw Error(ExitCode::failed,
                fmt::format("{} tokens of {} were judged in the queue {}, and {} exist", judged, action,
                            record.queue, count),
                "mailroom migrate verify shows whether the schema is intact; otherwise this is a bug");
  }
}

std::vector<std::string> gap_holders(pqxx::transaction_base& transaction, const ClaimRecord& record,
                                     const QueueReconciliation& result) {
  std::vector<std::string> holders;
  if (result.tokens_with(fate::Outcome::in_gap) == 0) return holders;
  for (const auto& holder : status::find_gap_holders(transaction, record.gap_ids))
    holders.push_back(holder.gid.empty() ? status::session_text(holder.session)
                                         : "prepared transaction " + holder.gid);
  return holders;
}

/// Counts the tokens that batches of the period emitted and that no longer exist. A token that was emitted
/// again counts once. Each range of ids is a condition of the primary key.
std::int64_t count_deleted(pqxx::transaction_base& transaction, const std::string& queue,
                           TokenCounter::Scope scope) {
  return db::Connection::execute(transaction, R"(
SELECT coalesce(sum(upper(u.g) - lower(u.g) - t.existing), 0)::bigint
FROM (SELECT range_agg(r) AS ids FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) r
      WHERE b.queue = $1 AND b.emitted_at IS NOT NULL
        AND b.claimed_at >= to_timestamp($2::bigint) AND b.claimed_at < to_timestamp($3::bigint)) b,
  unnest(b.ids) u (g),
  LATERAL (SELECT count(*) AS existing FROM tokens WHERE id >= lower(u.g) AND id < upper(u.g)) t)",
                                 queue, scope.since, scope.until)
      .value<std::int64_t>();
}

/// When prune last removed tokens, since the period began.
std::optional<Moment> last_prune(pqxx::transaction_base& transaction, TokenCounter::Scope scope) {
  const auto row = db::Connection::execute(
      transaction,
      fmt::format("SELECT {} AS at_us FROM mailroom_operations "
                  "WHERE kind = 'prune' AND at >= to_timestamp($1::bigint) AND details->>'tokens' <> '0'",
                  db::microseconds_sql("max(at)")),
      scope.since)[0];
  return row.optional_moment<std::chrono::microseconds>("at_us");
}

QueueReconciliation reconcile_queue(pqxx::transaction_base& transaction, const std::string& queue,
                                    const PeriodTokens& tokens, TokenCounter::Scope scope,
                                    const ReconcileRequest& request) {
  auto record = read_claim_record(transaction, queue, scope.since);
  record.output = request.output;
  std::optional<PeopleReader> people;
  if (request.listed != nullptr) people.emplace(transaction, queue, *request.listed, request.on_people);
  QueueLedger ledger(transaction, record, scope, request.listed,
                     [&](JudgedToken token) { people->add(std::move(token)); });
  StretchCutter cutter(tokens.ids, record.has_deliveries,
                       [&](const Stretch& stretch) { ledger.add(stretch); });
  read_recorded_ranges(transaction, record, [&](RecordedRange range) { cutter.add(std::move(range)); });
  cutter.finish();
  auto result = ledger.finish();
  if (people) people->finish();
  require_complete(tokens, record, ledger);
  result.gap_holders = gap_holders(transaction, record, result);
  result.deleted = count_deleted(transaction, queue, scope);
  return result;
}

}  // namespace

std::int64_t QueueReconciliation::tokens_with(fate::Outcome outcome) const {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}, [&](auto sum, const auto& each) {
    return sum + (each.outcome == outcome ? each.tokens : 0);
  });
}

std::int64_t Reconciliation::tokens_with(fate::Outcome outcome) const {
  return std::accumulate(queues.begin(), queues.end(), std::int64_t{0},
                         [&](auto sum, const auto& queue) { return sum + queue.tokens_with(outcome); });
}

Reconciliation reconcile(db::Connection& connection, const ReconcileRequest& request) {
  return audit::in_one_snapshot(
      connection, request.queues, [&](pqxx::transaction_base& transaction, Moment now) {
        db::Connection::execute(transaction, "SET LOCAL jit = off");
        Reconciliation result{
            .now = now,
            .period = audit::parse_period(request.since.empty() ? "24h" : request.since, request.until, now)};
        if (request.until.empty()) result.period.until = now + std::chrono::seconds(1);
        const TokenCounter::Scope scope{.since = in_seconds(std::max(result.period.since, Moment())),
                                        .until = in_seconds(result.period.until),
                                        .now = in_seconds(now)};
        const auto tokens = read_period_tokens(transaction, scope);
        for (const auto& queue : request.queues)
          result.queues.push_back(reconcile_queue(transaction, queue, tokens, scope, request));
        result.scheduled = status::read_scheduled_messages(transaction);
        result.pruned_at = last_prune(transaction, scope);
        result.lost = status::read_lost_messages(transaction, std::max(result.period.since, Moment()),
                                                 result.period.until);
        if (request.counts_accounts && request.until.empty())
          result.accounts_without_token = status::count_accounts_without_token(transaction);
        return result;
      });
}

selection::Selection resolve_outcomes(db::Connection& connection, const std::string& queue,
                                      selection::Selection selection) {
  if (selection.outcomes.empty()) return selection;
  std::vector<std::int64_t> ids;
  reconcile(connection, {.queues = {queue},
                         .since = moment_text(selection.since.value_or(Moment())),
                         .until = selection.until ? moment_text(*selection.until) : "",
                         .listed = &selection,
                         .on_people = [&](const std::vector<TokenOfPerson>& people) {
                           for (const auto& person : people)
                             ids.push_back(person.token);
                         }});
  std::sort(ids.begin(), ids.end());
  selection.outcomes.clear();
  selection.tokens = selection::to_id_ranges(ids);
  return selection;
}

}  // namespace mailroom::reconcile
