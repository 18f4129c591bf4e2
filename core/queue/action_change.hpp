// Changes of actions as a plan: checked against the table, shown, then carried out in one transaction.
#pragma once

#include <string>
#include <vector>

#include "queue/action.hpp"
#include "queue/operation_author.hpp"
#include "queue/queue_definition.hpp"

namespace mailroom::queue {

/// A new action, or what becomes of one.
struct ActionChange {
  bool is_new = false;
  Action before{};  ///< of a new one, what is not given has
  Action after{};
};

/// A property as `action show` names it, and its value: `none` if it is not set.
struct ActionText {
  std::string name;
  std::string value;
};
/// All of them but the name, in one order.
std::vector<ActionText> action_texts(const Action& action);

/// Throws Error(usage) for a name, a path or a code that no action can have, and for a name or a path that
/// another action has.
void require_valid(const ActionChange& change, const Actions& actions);

/// Throws Error(usage) for a producer that is no role.
void require_role(db::Connection& connection, const std::string& producer);
/// Throws Error(usage) for an action that every database has. `own_only`: also for message, of which all may
/// be set but an account status, and which cannot be retired.
void require_changeable(const Action& action, bool own_only);

/// The queues that take it.
std::vector<std::string> takers_of(const std::string& action, const QueueCatalogue& catalogue);

/// Carries the change out, in one transaction, which records it and tells the consumers.
void carry_out(db::Connection& connection, const ActionChange& change, const OperationAuthor& author);

/// Refuses messages of the action from now on. What is queued goes on.
void retire_action(db::Connection& connection, const std::string& action, const OperationAuthor& author);

}  // namespace mailroom::queue
