// What an operator's NAME means, wherever a command takes one: an account, a token, a batch or a message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "db/connection.hpp"

namespace mailroom::accounts {

/// One account, token, batch or message, as it was typed.
struct NamedSubject {
  enum class Kind { account, token, signed_token, batch, message };
  Kind kind = Kind::account;
  std::int64_t id = 0;  ///< of a token, a batch or a message
  std::string name{};   ///< of an account, the text of a signed token, or the uuid of a message
};

/// Reads `token:N`, `batch:N`, `message:N` or `message:UUID`, a token as it was mailed, or the name of an
/// account. Throws Error(usage) for what looks like a token and is none, and for a prefix without an id.
NamedSubject parse_subject(std::string_view name);

/// The same after `token:` and after `batch:`.
NamedSubject parse_token_subject(std::string_view text);
NamedSubject parse_batch_subject(std::string_view text);

/// The id of a token or of a signed token. Throws Error(unusable) for one that is not in this database.
std::int64_t token_id_of(db::Connection& connection, const NamedSubject& subject);

}  // namespace mailroom::accounts
