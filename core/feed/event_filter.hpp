#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feed/event.hpp"

namespace mailroom {

/// Which events are wanted. Empty lists and no action mean all.
struct EventFilter {
  std::optional<std::string> action;   ///< activation or password_recovery
  std::vector<std::int64_t> accounts;  ///< by id
  std::vector<std::string> states;     ///< words of state_words()
  std::int64_t from_token = 0;         ///< of tokens, none with a smaller id

  /// True when a batch is judged by the tokens that it holds.
  bool asks_for_tokens() const { return action.has_value() || !accounts.empty(); }
  bool wants_state(std::string_view state) const;
  /// False when no event of this word can be wanted, so that its row need not be read.
  bool may_want(EventWord word) const;
  /// Judges an event with all its fields, a batch by its `matches`.
  bool wants(const Event& event) const;
};

}  // namespace mailroom
