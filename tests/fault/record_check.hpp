#pragma once

#include "db/connection.hpp"
#include "fault/fault.hpp"

namespace mailroom::test {

/// Accounts for every token in every queue, as `mailroom reconcile` does: a token that is unexplained is a
/// problem of the outcome.
void account_for_tokens(db::Connection& connection, Outcome& outcome);

/// The same, compared with the outputs of the collectors, as with --against.
void account_for_tokens(db::Connection& connection, const std::vector<std::string>& outputs,
                        Outcome& outcome);

}  // namespace mailroom::test
