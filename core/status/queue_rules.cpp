// Reads mailroom_queues and mailroom_budgets, and computes what a rate allows now.

#include "status/queue_rules.hpp"

#include <algorithm>
#include <cmath>

#include "db/values.hpp"

namespace mailroom::status {
namespace {

const std::string rules_sql = "SELECT priority, " + db::microseconds_sql("paused_at") + R"( AS paused_us,
  (extract(epoch FROM clock_timestamp() - paused_at) * 1000)::bigint AS paused_for_ms, paused_by, pause_reason
FROM mailroom_queues WHERE name = $1)";

constexpr const char* rule_actions_sql =
    "SELECT action FROM unnest(mailroom_queue_actions($1)) a (action) ORDER BY 1";

// As mailroom_allowance() reads them.
constexpr const char* rule_budgets_sql = R"(
SELECT b.name, b.tokens, (extract(epoch FROM b.period) * 1000)::bigint AS period_ms, b.burst,
  extract(epoch FROM greatest(b.taken_until, n.now) - n.now)::double precision AS ahead
FROM mailroom_queues q JOIN mailroom_budgets b ON b.name = ANY (q.budgets), (SELECT clock_timestamp() AS now) n
WHERE q.name = $1 ORDER BY b.name)";

std::optional<PauseStatus> read_pause(const db::Row& row) {
  const auto since = row.optional_moment<std::chrono::microseconds>("paused_us");
  if (!since) return std::nullopt;
  return PauseStatus{.since = *since,
                     .lasts = Milliseconds{std::max<std::int64_t>(row.number("paused_for_ms"), 0)},
                     .actor = row.text("paused_by"),
                     .reason = row.text("pause_reason")};
}

}  // namespace

std::int64_t BudgetStatus::left() const {
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(burst - ahead / rate.gap())), 0);
}

Milliseconds BudgetStatus::wait_for(std::int64_t tokens) const {
  const auto spare = static_cast<double>(burst - std::min<std::int64_t>(tokens, burst));
  return std::max(std::chrono::ceil<Milliseconds>(ahead - rate.gap() * spare), Milliseconds{0});
}

Milliseconds QueueRules::wait_for(std::int64_t tokens) const {
  Milliseconds longest{0};
  for (const auto& budget : budgets)
    longest = std::max(longest, budget.wait_for(tokens));
  return longest;
}

QueueRules read_queue_rules(pqxx::transaction_base& transaction, const std::string& queue) {
  QueueRules rules;
  for (const auto& row : db::Connection::execute(transaction, rules_sql, queue)) {
    rules.priority = row.number<int>("priority");
    rules.pause = read_pause(row);
  }
  rules.actions = db::Connection::execute(transaction, rule_actions_sql, queue).values<std::string>();
  for (const auto& row : db::Connection::execute(transaction, rule_budgets_sql, queue)) {
    rules.budgets.push_back(
        {.name = row.text("name"),
         .rate = {.count = row.number<int>("tokens"), .period = Milliseconds{row.number("period_ms")}},
         .burst = row.number<int>("burst"),
         .ahead = std::chrono::duration<double>(row.number<double>("ahead"))});
  }
  return rules;
}

}  // namespace mailroom::status
