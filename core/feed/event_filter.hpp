#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feed/event.hpp"

namespace mailroom {

/// Selects events. Empty lists and no action match all.
struct EventFilter {
  std::optional<std::string> action;   ///< activation or password_recovery
  std::vector<std::int64_t> accounts;  ///< by id
  std::vector<std::string> states;     ///< of state_text()
  std::int64_t from_token = 0;         ///< the smallest token id

  /// True if a batch matches by the tokens that it holds.
  bool asks_for_tokens() const { return action.has_value() || !accounts.empty(); }
  bool wants_state(std::string_view state) const;
  /// False if no event of this kind can match, so its row need not be read.
  bool may_want(EventKind kind) const;
  /// True if a complete event matches; a batch matches by its `matches`.
  bool wants(const Event& event) const;
};

}  // namespace mailroom
