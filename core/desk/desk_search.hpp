// Finds what somebody has typed, whatever it is, by indexes alone: one mail among ten million is found at
// once, and what no index finds is refused with a word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accounts/account_lookup.hpp"
#include "db/connection.hpp"

namespace mailroom::desk {

/// What was found; nothing: `note` says where nobody looked.
struct DeskFind {
  std::vector<std::int64_t> messages{};  ///< newest first, at most `most_found`
  bool has_more = false;                 ///< older messages
  std::optional<accounts::AccountRecord> account{};
  std::optional<std::int64_t> token{};  ///< that of an account, of which a mail was found
  std::string note{};

  bool empty() const { return messages.empty() && !account && !token; }
};

constexpr std::size_t most_found = 20;

/// `text` is an address, a mailbox, a reference, a login, `message:17`, `17`, a uuid, a Message-ID with or
/// without angle brackets, or the id with which a relay took a mail of the last day.
DeskFind find_at_desk(db::Connection& connection, const std::string& text);

}  // namespace mailroom::desk
