// What a plan means for the tokens that exist now.

#include <algorithm>

#include "db/values.hpp"
#include "queue/queue_plan.hpp"

namespace mailroom::queue {
namespace {

struct DueTokens {
  std::int64_t count = 0;
  std::int64_t emitted = 0;  ///< by any queue
  std::int64_t after = 0;    ///< the ids of those that were not emitted are larger
};

/// The due tokens of `actions` (empty: all) with ids above `from`, up to `to`.
DueTokens read_due(db::Connection& connection, std::int64_t from, std::int64_t to,
                   const std::vector<std::string>& actions) {
  if (from >= to) return {};
  const auto row = connection.run(R"(
WITH due AS MATERIALIZED (
  SELECT t.id, t.created_at
  FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now) clock,
    tokens t LEFT JOIN accounts a ON a.id = t.account
  WHERE t.id > $1 AND t.id <= $2 AND ($3::token_action[] = '{}' OR t.action = ANY ($3::token_action[]))
    AND mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, clock.now) = 'due'),
emitted AS MATERIALIZED (
  SELECT coalesce(range_agg(r), '{}') AS ids
  FROM jobs j,
    LATERAL mailroom_emitted_ids(j.job_type, (SELECT min(created_at) FROM due), int8range($1, $2, '(]')) e (ids),
    unnest(e.ids) r)
SELECT count(*), count(*) FILTER (WHERE d.id <@ e.ids) AS emitted,
  coalesce(min(d.id) FILTER (WHERE NOT d.id <@ e.ids) - 1, 0) AS after
FROM due d, emitted e)",
                                  from, to, db::array_text(actions))[0];
  return {.count = row.number("count"), .emitted = row.number("emitted"), .after = row.number("after")};
}

/// Finds the effects of one plan.
class EffectReader {
 public:
  EffectReader(db::Connection& connection, const QueuePlan& plan, const QueueCatalogue& catalogue)
      : connection_(connection), plan_(plan), catalogue_(catalogue), after_(queues_after(plan, catalogue)) {}

  std::vector<QueueEffect> read() {
    for (const auto& change : plan_.queues) {
      if (change.start) {
        const auto due = read_due(connection_, change.start->cursor, catalogue_.newest, change.after.actions);
        if (due.count > 0)
          effects_.push_back({.kind = QueueEffect::Kind::begins,
                              .queue = change.name,
                              .due = due.count,
                              .emitted_before = due.emitted});
      }
      for (const auto& action : catalogue_.actions.all())
        read_action(change, action.name);
    }
    return std::move(effects_);
  }

 private:
  void read_action(const QueueChange& change, const std::string& action) {
    const bool was_taken = !change.start && change.before.takes(action);
    const bool is_taken = change.after.takes(action);
    if (is_taken && !was_taken) {
      if (!change.start) read_taken(change.name, action);
      read_doubled(change.name, action);
    } else if (was_taken && !is_taken) {
      read_released(change.name, action);
    }
  }

  void read_taken(const std::string& queue, const std::string& action) {
    QueueEffect effect{.kind = QueueEffect::Kind::taken, .queue = queue, .action = action};
    // What another queue takes already it has emitted, or emits.
    const bool is_taken =
        std::any_of(catalogue_.queues.begin(), catalogue_.queues.end(),
                    [&](const auto& other) { return other.name != queue && other.properties.takes(action); });
    if (!is_taken) count_missed(effect, 0, catalogue_.find_queue(queue)->cursor);
    effects_.push_back(std::move(effect));
  }

  /// Counts the due tokens that no queue has emitted.
  void count_missed(QueueEffect& effect, std::int64_t from, std::int64_t to) {
    const auto due = read_due(connection_, from, to, {effect.action});
    effect.due = due.count - due.emitted;
    effect.after = due.after;
  }

  void read_released(const std::string& queue, const std::string& action) {
    const auto cursor = catalogue_.find_queue(queue)->cursor;
    QueueEffect effect{.kind = QueueEffect::Kind::released, .queue = queue, .action = action};
    auto covered = catalogue_.newest;
    for (const auto& other : after_) {
      if (!other.properties.takes(action)) continue;
      effect.others.push_back(other.name);
      covered = std::min(covered, std::max(other.cursor, cursor));
    }
    count_missed(effect, cursor, covered);
    effects_.push_back(std::move(effect));
  }

  void read_doubled(const std::string& queue, const std::string& action) {
    QueueEffect effect{.kind = QueueEffect::Kind::doubled, .queue = queue, .action = action};
    for (const auto& other : after_) {
      if (other.name != queue && other.properties.takes(action)) effect.others.push_back(other.name);
    }
    if (!effect.others.empty()) effects_.push_back(std::move(effect));
  }

  db::Connection& connection_;
  const QueuePlan& plan_;
  const QueueCatalogue& catalogue_;
  const std::vector<QueueRecord> after_;
  std::vector<QueueEffect> effects_{};
};

}  // namespace

std::vector<QueueEffect> effects_of(db::Connection& connection, const QueuePlan& plan,
                                    const QueueCatalogue& catalogue) {
  return EffectReader(connection, plan, catalogue).read();
}

bool changes_who_is_mailed(const QueuePlan& plan, const std::vector<QueueEffect>& effects) {
  const auto changes = [](const QueueChange& change) { return !change.start && change.changes_actions(); };
  return std::any_of(plan.queues.begin(), plan.queues.end(), changes) ||
         std::any_of(effects.begin(), effects.end(), [](const auto& effect) {
           return effect.kind == QueueEffect::Kind::begins || effect.kind == QueueEffect::Kind::doubled;
         });
}

}  // namespace mailroom::queue
