// Selectors by what a mail is and what a relay said of it: the same for tokens and for messages.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::selection {

/// Mails that match each of the selectors that are given, and of each at least one value.
struct MailSelectors {
  std::vector<std::string> domains{};    ///< of the address, without @
  std::vector<std::string> roles{};      ///< that asked for them
  std::vector<std::string> templates{};  ///< of the message, or else of its action
  std::vector<std::string> subjects{};   ///< a part of it, in any case
  std::vector<std::string> locales{};
  std::vector<std::string> queue_ids{};    ///< a word of the reply of the relay
  std::vector<std::string> message_ids{};  ///< without angle brackets

  bool empty() const;
  /// Adds what is given to the one parameter of the conditions.
  void write(nlohmann::json& object) const;
  /// The condition that a row `m` of messages, with its account `a` if it has one, has such a mail, beginning
  /// with AND. `parameter` is SQL: `$1`.
  std::string message_condition(std::string_view parameter) const;
  /// The condition that a row `t` of tokens has such a mail, likewise. `queue` is SQL for the queue whose
  /// deliveries count.
  std::string token_condition(std::string_view parameter, std::string_view queue) const;
};

/// `big.example` of `@Big.Example`. Throws Error(usage) for an address; `option` names the option.
std::string parse_domain(const std::string& option, const std::string& text);
/// A Message-ID without angle brackets. Throws Error(usage) for what cannot be one.
std::string parse_message_id(const std::string& option, const std::string& text);

}  // namespace mailroom::selection
