// A key with which programs ask for mails over HTTP, as a role: how one is made, and the table that has what
// it can be known by.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "crypto/hmac.hpp"
#include "db/connection.hpp"

namespace mailroom::api_keys {

/// How much of a key may be shown: it names the key.
constexpr std::size_t id_size = 8;
/// Of 256 random bits in base64url.
constexpr std::size_t random_size = 43;

/// `prefix` and 256 random bits. Throws Error(failed) if there are none.
std::string make_key(std::string_view prefix);
std::string id_of(std::string_view key);
crypto::Digest digest_of(std::string_view key);
/// True if it may be a key at all: no other is looked up.
bool has_form(std::string_view key, std::string_view prefix);

struct ApiKey {
  std::string id{};
  std::string role{};
  std::string name{};        ///< empty for none
  std::string permission{};  ///< `full_access` or `sending_access`
  Moment created_at{};
  std::optional<Moment> revoked_at{};
  std::string problem{};  ///< why it does not work, beside that it was revoked; empty if it does
};

/// Enters `key`. Throws Error(unusable) if its role may have none.
void create_key(pqxx::transaction_base& transaction, const std::string& key, const ApiKey& about);
/// False if there is no such key that works.
bool revoke_key(pqxx::transaction_base& transaction, const std::string& id);
/// The newest first.
std::vector<ApiKey> list_keys(db::Connection& connection);

}  // namespace mailroom::api_keys
