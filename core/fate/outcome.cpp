// The names of the outcomes, in the order of the enumeration.

#include "fate/outcome.hpp"

#include <algorithm>

namespace mailroom::fate {
namespace {

constexpr std::array<const char*, outcome_count> outcome_names{
    "emitted",    "emitted_again", "maybe_emitted", "accepted",  "rejected",   "unknown",
    "expired",    "cancelled",     "delivered",     "bounced",   "complained", "deferred",
    "skipped",    "leased",        "in_gap",        "in_replay", "waiting",    "dead",
    "moved_past", "not_taken",     "not_recorded",  "missed",    "unexplained"};
static_assert(static_cast<std::size_t>(Outcome::unexplained) + 1 == outcome_count);

}  // namespace

const char* outcome_name(Outcome outcome) {
  return outcome_names.at(static_cast<std::size_t>(outcome));
}

std::string outcome_text(Outcome outcome) {
  std::string text = outcome_name(outcome);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::optional<Outcome> find_outcome(std::string_view name) {
  const auto found = std::find(outcome_names.begin(), outcome_names.end(), name);
  if (found == outcome_names.end()) return std::nullopt;
  return static_cast<Outcome>(found - outcome_names.begin());
}

}  // namespace mailroom::fate
