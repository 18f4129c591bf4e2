// Changes of queues as a plan: checked, shown with its effects, then carried out in one transaction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "queue/operation_author.hpp"
#include "queue/queue_definition.hpp"

namespace mailroom::queue {

/// Where a new queue begins.
struct QueueStart {
  std::int64_t cursor = 0;  ///< it emits tokens with larger ids
  std::string like{};       ///< a queue at whose cursor it begins, with the same gaps; empty for none
};

struct QueueChange {
  std::string name;
  QueueProperties before{};  ///< the defaults for a new queue
  QueueProperties after{};
  std::optional<QueueStart> start{};  ///< of a new queue

  bool changes_nothing() const { return !start && before == after; }
  bool changes_actions() const { return before.actions != after.actions; }
};

struct BudgetChange {
  std::string name;
  std::optional<PacedRate> before{};  ///< nullopt for a new budget
  PacedRate after{};

  bool changes_nothing() const { return before == after; }
};

/// Changes of queues and budgets, each ordered by name.
struct QueuePlan {
  std::vector<BudgetChange> budgets{};
  std::vector<QueueChange> queues{};

  bool changes_nothing() const;
};

/// `twice`, `3 times`
std::string times_text(std::size_t count);

/// Completes `plan`: sorts it, and removes what changes nothing. Throws Error(usage) if it creates a queue
/// that exists, names a budget that exists neither in `catalogue` nor in the plan, or gives a queue and a
/// budget one name.
QueuePlan checked(QueuePlan plan, const QueueCatalogue& catalogue);

/// The queues after the plan.
std::vector<QueueRecord> queues_after(const QueuePlan& plan, const QueueCatalogue& catalogue);

/// What `created`, a new queue, takes over: the change of the queue that takes some of its actions now, which
/// keeps the others. nullopt if no queue takes any of them. Throws Error(usage) if several do, or if the one
/// would be left with no action: each person would be mailed twice.
std::optional<QueueChange> take_over(const QueueChange& created, const QueueCatalogue& catalogue);

/// The actions that none of `queues` takes, of those that are not retired.
std::vector<std::string> untaken_actions(const std::vector<QueueRecord>& queues, const Actions& actions);

/// What a plan means for the tokens of one action.
struct QueueEffect {
  enum class Kind {
    begins,    ///< a new queue emits `due` tokens at once
    taken,     ///< the queue takes the action from now on, but not the `due` tokens below its cursor
    released,  ///< the queue takes the action no longer; no queue emits `due` of the tokens above its cursor
    doubled,   ///< it, and `others`, emit each token of the action
  };
  Kind kind{};
  std::string queue;
  std::string action{};  ///< empty for `begins`
  /// `taken`, `released`: those that no queue has emitted yet.
  std::int64_t due = 0;
  std::int64_t emitted_before = 0;    ///< `begins`: those of them that a queue has emitted already
  std::int64_t after = 0;             ///< `taken`, `released`: their ids are larger
  std::vector<std::string> others{};  ///< the other queues that take the action
};

/// Reads what the plan means for the tokens that exist now.
std::vector<QueueEffect> effects_of(db::Connection& connection, const QueuePlan& plan,
                                    const QueueCatalogue& catalogue);

/// True if the plan changes who is mailed: actions of a queue, a new queue that emits tokens at once, or
/// tokens that several queues emit.
bool changes_who_is_mailed(const QueuePlan& plan, const std::vector<QueueEffect>& effects);

/// Carries out `plan` in one transaction under the locks of its queues, records each change and notifies
/// `channel`. Throws Error(declined) if a queue or a budget has changed since the plan was made.
void carry_out(db::Connection& connection, const QueuePlan& plan, const OperationAuthor& author,
               const std::string& channel);

/// Pauses or resumes a queue. Returns false if nothing changed. Throws DatabaseError MR001 for an unknown
/// queue.
bool pause_queue(db::Connection& connection, const std::string& queue, bool pause,
                 const OperationAuthor& author, const std::string& channel);

/// Drops a queue. Throws DatabaseError MR001 for an unknown queue.
void drop_queue(db::Connection& connection, const std::string& queue, const OperationAuthor& author,
                const std::string& channel);

}  // namespace mailroom::queue
