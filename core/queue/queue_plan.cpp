// Refuses plans that mail people twice by accident, and carries plans out under the locks of their queues.

#include "queue/queue_plan.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::queue {
namespace {

constexpr auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };

bool has_budget(const QueuePlan& plan, const QueueCatalogue& catalogue, const std::string& name) {
  const auto shared = catalogue.shared_budgets();
  return std::find(shared.begin(), shared.end(), name) != shared.end() ||
         std::any_of(plan.budgets.begin(), plan.budgets.end(),
                     [&](const auto& budget) { return budget.name == name; });
}

void refuse_unknown_budget(const QueueCatalogue& catalogue, const std::string& name) {
  const auto known = catalogue.shared_budgets();
  throw Error(
      ExitCode::usage, fmt::format("there is no budget \"{}\"", name),
      fmt::format("{}; --budget-rate RATE, or the section budgets of a file, creates it",
                  known.empty() ? "there are none yet" : fmt::format("budgets: {}", joined(known, ", "))));
}

/// The rate of a queue alone is kept in a budget with its name.
void refuse_common_name(const QueuePlan& plan, const QueueCatalogue& catalogue) {
  const auto queues = queues_after(plan, catalogue);
  for (const auto& queue : queues) {
    if (std::none_of(plan.budgets.begin(), plan.budgets.end(),
                     [&](const auto& budget) { return budget.name == queue.name; }) &&
        std::none_of(queues.begin(), queues.end(),
                     [&](const auto& other) { return other.properties.budget == queue.name; }) &&
        !(catalogue.find_queue(queue.name) == nullptr && catalogue.find_budget(queue.name) != nullptr))
      continue;
    throw Error(ExitCode::usage, fmt::format("\"{}\" cannot name both a queue and a budget", queue.name),
                "the rate of a queue alone is set with --rate; give a shared budget another name");
  }
}

/// Takes the locks of all queues first, as a claim takes that of its queue before those of its budgets.
void lock_queues(pqxx::transaction_base& transaction, const QueuePlan& plan) {
  std::vector<std::string> names;
  for (const auto& change : plan.queues) {
    names.push_back(change.name);
    if (change.start && !change.start->like.empty()) names.push_back(change.start->like);
  }
  std::sort(names.begin(), names.end());
  for (const auto& name : names)
    db::Connection::execute(transaction,
                            "SELECT pg_advisory_xact_lock(mailroom_lock_class('queue'), hashtext($1))", name);
}

void refuse_outdated(const QueuePlan& plan, const QueueCatalogue& now) {
  const auto is_outdated = [&](const QueueChange& change) {
    const auto* queue = now.find_queue(change.name);
    return change.start ? queue != nullptr : queue == nullptr || queue->properties != change.before;
  };
  const auto is_changed = [&](const BudgetChange& change) {
    const auto* budget = now.find_budget(change.name);
    return change.before ? budget == nullptr || budget->paced != *change.before : budget != nullptr;
  };
  if (std::none_of(plan.queues.begin(), plan.queues.end(), is_outdated) &&
      std::none_of(plan.budgets.begin(), plan.budgets.end(), is_changed))
    return;
  throw Error(ExitCode::declined, "the queues have changed since the plan was made: nothing was changed",
              "run the command again to see the new plan");
}

void write_queue(pqxx::transaction_base& transaction, const QueueChange& change, const std::string& channel) {
  const auto definition = properties_json(change.after);
  if (!change.start) {
    db::Connection::execute(transaction, "SELECT mailroom_set_queue($1, $2::jsonb, $3)", change.name,
                            definition, channel);
    return;
  }
  db::Connection::execute(transaction, "SELECT mailroom_create_queue($1, $2, $3::jsonb, $4, nullif($5, ''))",
                          change.name, change.start->cursor, definition, channel, change.start->like);
}

/// `activation, message and recovery`
std::string list_text(const std::vector<std::string>& words) {
  const auto before = joined(std::span(words).first(words.size() - 1), ", ");
  return before.empty() ? words.back() : before + " and " + words.back();
}

/// Sorted, as the actions of queues are.
std::vector<std::string> names_of(const Actions& actions) {
  std::vector<std::string> names;
  for (const auto& action : actions.all())
    names.push_back(action.name);
  std::sort(names.begin(), names.end());
  return names;
}

/// `takers` take the actions `common` of a queue that is to be created.
[[noreturn]] void refuse_second_mail(const std::vector<const QueueRecord*>& takers,
                                     const std::vector<std::string>& common,
                                     const QueueCatalogue& catalogue) {
  std::vector<std::string> names;
  std::vector<std::string> actions;
  for (const auto* queue : takers)
    names.push_back(queue->name);
  for (const auto& action : common)
    actions.push_back(short_action_name(action));
  const auto untaken = untaken_actions(catalogue.queues, catalogue.actions);
  std::string hint;
  if (!untaken.empty()) {
    hint = fmt::format("--action {} takes what no queue takes; ", short_action_name(untaken.front()));
  } else if (takers.size() == 1 && common.size() > 1) {
    hint = fmt::format("--action {} takes only those over; ", actions.back());
  }
  throw Error(ExitCode::usage,
              fmt::format("queue{} {} take{} {} tokens already: each person would be mailed {}",
                          names.size() == 1 ? "" : "s", shown_text(joined(names, " and ")),
                          names.size() == 1 ? "s" : "", list_text(actions), times_text(names.size() + 1)),
              hint + "--copy creates a queue that emits each token once more, for another system");
}

}  // namespace

std::string times_text(std::size_t count) {
  return count == 2 ? std::string("twice") : fmt::format("{} times", count);
}

bool QueuePlan::changes_nothing() const {
  return budgets.empty() && queues.empty();
}

QueuePlan checked(QueuePlan plan, const QueueCatalogue& catalogue) {
  for (const auto& change : plan.queues) {
    if (change.start && catalogue.find_queue(change.name) != nullptr) {
      throw Error(ExitCode::usage, fmt::format("the queue \"{}\" exists", change.name),
                  "mailroom queue set changes it");
    }
    if (!change.after.budget.empty() && !has_budget(plan, catalogue, change.after.budget))
      refuse_unknown_budget(catalogue, change.after.budget);
  }
  refuse_common_name(plan, catalogue);
  std::erase_if(plan.budgets, [](const auto& change) { return change.changes_nothing(); });
  std::erase_if(plan.queues, [](const auto& change) { return change.changes_nothing(); });
  std::sort(plan.budgets.begin(), plan.budgets.end(), by_name);
  std::sort(plan.queues.begin(), plan.queues.end(), by_name);
  return plan;
}

std::vector<QueueRecord> queues_after(const QueuePlan& plan, const QueueCatalogue& catalogue) {
  auto queues = catalogue.queues;
  for (const auto& change : plan.queues) {
    const auto found = std::find_if(queues.begin(), queues.end(),
                                    [&](const auto& queue) { return queue.name == change.name; });
    if (found != queues.end()) {
      found->properties = change.after;
    } else if (change.start) {
      queues.push_back({.name = change.name, .cursor = change.start->cursor, .properties = change.after});
    }
  }
  return queues;
}

std::optional<QueueChange> take_over(const QueueChange& created, const QueueCatalogue& catalogue) {
  std::vector<const QueueRecord*> takers;
  std::vector<std::string> common;
  for (const auto& action : names_of(catalogue.actions)) {
    for (const auto& queue : catalogue.queues) {
      if (!created.after.takes(action) || !queue.properties.takes(action)) continue;
      if (std::find(takers.begin(), takers.end(), &queue) == takers.end()) takers.push_back(&queue);
      if (common.empty() || common.back() != action) common.push_back(action);
    }
  }
  if (takers.empty()) return std::nullopt;
  QueueChange change{.name = takers.front()->name,
                     .before = takers.front()->properties,
                     .after = takers.front()->properties};
  change.after.actions.clear();
  for (const auto& action : names_of(catalogue.actions)) {
    if (change.before.takes(action) && !created.after.takes(action)) change.after.actions.push_back(action);
  }
  if (takers.size() > 1 || change.after.actions.empty()) refuse_second_mail(takers, common, catalogue);
  return change;
}

std::vector<std::string> untaken_actions(const std::vector<QueueRecord>& queues, const Actions& actions) {
  std::vector<std::string> untaken;
  for (const auto& action : actions.all()) {
    const auto takes = [&](const QueueRecord& queue) { return queue.properties.takes(action.name); };
    if (!action.is_retired && std::none_of(queues.begin(), queues.end(), takes))
      untaken.push_back(action.name);
  }
  return untaken;
}

void carry_out(db::Connection& connection, const QueuePlan& plan, const OperationAuthor& author,
               const std::string& channel) {
  connection.transact([&](pqxx::work& transaction) {
    set_author(transaction, author);
    lock_queues(transaction, plan);
    refuse_outdated(plan, read_queues_within(transaction));
    for (const auto& change : plan.budgets) {
      db::Connection::execute(transaction, "SELECT mailroom_set_budget($1, $2::jsonb, $3)", change.name,
                              paced_json(change.after), channel);
    }
    for (const auto& change : plan.queues)
      write_queue(transaction, change, channel);
  });
}

bool pause_queue(db::Connection& connection, const std::string& queue, bool pause,
                 const OperationAuthor& author, const std::string& channel) {
  return connection.transact([&](pqxx::work& transaction) {
    set_author(transaction, author);
    return db::Connection::execute(transaction, "SELECT mailroom_pause_queue($1, $2, $3)", queue, pause,
                                   channel)
        .value<bool>();
  });
}

void drop_queue(db::Connection& connection, const std::string& queue, const OperationAuthor& author,
                const std::string& channel) {
  connection.transact([&](pqxx::work& transaction) {
    set_author(transaction, author);
    db::Connection::execute(transaction, "SELECT mailroom_drop_queue($1, $2)", queue, channel);
  });
}

}  // namespace mailroom::queue
