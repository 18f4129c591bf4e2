// The list of the people whose tokens have an outcome, which reconcile and audit print.
#pragma once

#include <cstdint>
#include <optional>

#include "cmd/terminal/context.hpp"
#include "reconcile/reconciliation.hpp"

namespace mailroom::cmd {

enum class PeopleFormat { text, json, csv };

/// Prints those of `selection` as they are found: a table, one JSON object a line, or CSV with a heading.
/// With `newest` only those of so many tokens, the newest ones, and warns if there are more. Returns the
/// reconciliation of the period of `request`.
reconcile::Reconciliation print_people(Context& context, db::Connection& connection,
                                       reconcile::ReconcileRequest request,
                                       const selection::Selection& selection, PeopleFormat format,
                                       std::optional<std::int64_t> newest = std::nullopt);

}  // namespace mailroom::cmd
