// Tells names from ids and from tokens. What may hold a secret is repeated by no message.

#include "accounts/named_subject.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <limits>

#include "accounts/account_lookup.hpp"
#include "accounts/token_lookup.hpp"
#include "base/error.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "crypto/token.hpp"

namespace mailroom::accounts {
namespace {

/// True if `text` may hold a complete secret, which no message may repeat.
bool may_hold_secret(std::string_view text) {
  return text.size() >= crypto::secret_text_size &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '+' || c == '/' || c == '=';
         });
}

NamedSubject signed_token(std::string_view text) {
  if (crypto::decode_token(text))
    return {.kind = NamedSubject::Kind::signed_token, .id = 0, .name = std::string(text)};
  throw Error(ExitCode::usage, "this looks like a token, but is not one",
              fmt::format("a token has {} characters of A-Z, a-z, 0-9, - and _; for an account with "
                          "such a name, type login:NAME",
                          crypto::token_size));
}

std::int64_t require_id(std::string_view what, std::string_view text) {
  if (const auto id = parse_id(text); id && *id < std::numeric_limits<std::int64_t>::max()) return *id;
  throw Error(ExitCode::usage,
              holds_token(text) ? fmt::format("a token is not the id of a {}", what)
                                : fmt::format("'{}' is not the id of a {}", text, what),
              fmt::format("ids are numbers, as in mailroom audit {}:51", what));
}

}  // namespace

NamedSubject parse_token_subject(std::string_view text) {
  if (may_hold_secret(trimmed(text))) return signed_token(trimmed(text));
  return {.kind = NamedSubject::Kind::token, .id = require_id("token", text)};
}

NamedSubject parse_batch_subject(std::string_view text) {
  return {.kind = NamedSubject::Kind::batch, .id = require_id("batch", text)};
}

NamedSubject parse_subject(std::string_view name) {
  constexpr std::string_view::size_type prefix = 6;
  constexpr std::string_view of_message = "message:";
  if (name.starts_with("token:")) return parse_token_subject(name.substr(prefix));
  if (name.starts_with("batch:")) return parse_batch_subject(name.substr(prefix));
  if (name.starts_with(of_message)) {
    const auto rest = name.substr(of_message.size());
    if (is_uuid(rest)) return {.kind = NamedSubject::Kind::message, .name = std::string(rest)};
    return {.kind = NamedSubject::Kind::message, .id = require_id("message", name.substr(of_message.size()))};
  }
  if (may_hold_secret(trimmed(name))) return signed_token(trimmed(name));
  return {.kind = NamedSubject::Kind::account, .id = 0, .name = std::string(name)};
}

std::int64_t token_id_of(db::Connection& connection, const NamedSubject& subject) {
  if (subject.kind != NamedSubject::Kind::signed_token) return subject.id;
  if (const auto id = find_token_id(connection, crypto::decode_token(subject.name)->secret)) return *id;
  throw Error(ExitCode::unusable, "this token is not in this database",
              "mailroom verify shows whether it is genuine");
}

}  // namespace mailroom::accounts
