// Each range of named tokens is a condition of the primary key; anything else is what the planner makes of
// it. Only columns that an operator may read.

#include "replay/chosen_tokens.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"

namespace mailroom::replay {

std::string chosen_tokens_sql(const selection::Selection& selection, std::string_view queue) {
  const auto* rows = selection.tokens ? R"(
FROM unnest(($2::jsonb->>'tokens')::int8multirange) named (g), LATERAL (
  SELECT id, account, action, consumed_at, expires_at, created_at FROM tokens
  WHERE tokens.id >= lower(named.g) AND tokens.id < upper(named.g)
  ORDER BY tokens.id LIMIT 2000000000) t)"
                                      : "\nFROM tokens t";
  return fmt::format("{}\nWHERE true{}", rows, selection.condition("$2", queue));
}

nlohmann::json selection_details(const selection::Selection& selection) {
  auto details = nlohmann::json::object();
  if (!selection.actions.empty()) details["actions"] = selection.actions;
  if (!selection.accounts.empty()) details["accounts"] = selection.accounts;
  for (const auto outcome : selection.outcomes)
    details["outcomes"].push_back(fate::outcome_name(outcome));
  for (const auto& code : selection.codes)
    details["codes"].push_back(code.first == code.last ? fmt::format("{}", code.first)
                                                       : fmt::format("{}-{}", code.first, code.last));
  if (!selection.batches.empty()) details["batches"] = selection.batches;
  if (!selection.consumers.empty()) details["consumers"] = selection.consumers;
  if (!selection.keys.empty()) details["keys"] = selection.keys;
  if (selection.since) details["since"] = moment_text(*selection.since);
  if (selection.until) details["until"] = moment_text(*selection.until);
  if (selection.mailed_since) details["mailed_since"] = moment_text(*selection.mailed_since);
  if (selection.mailed_until) details["mailed_until"] = moment_text(*selection.mailed_until);
  return details;
}

}  // namespace mailroom::replay
