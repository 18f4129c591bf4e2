// The functions of the schema do the work; what they are given of a key is its beginning and its digest.

#include "api_keys/api_key.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "crypto/base64.hpp"
#include "crypto/digest.hpp"

namespace mailroom::api_keys {

std::string make_key(std::string_view prefix) {
  std::array<std::uint8_t, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw Error(ExitCode::failed, "no random bytes");
  std::string key(prefix);
  key.resize(prefix.size() + random_size);
  crypto::encode_base64url(bytes, std::span(key).subspan(prefix.size()));
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

std::string id_of(std::string_view key) {
  return std::string(key.substr(0, id_size));
}

crypto::Digest digest_of(std::string_view key) {
  return crypto::sha256({key});
}

bool has_form(std::string_view key, std::string_view prefix) {
  return key.size() == prefix.size() + random_size && key.starts_with(prefix) &&
         std::ranges::all_of(key.substr(prefix.size()),
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

void create_key(pqxx::transaction_base& transaction, const std::string& key, const ApiKey& about) {
  const auto digest = digest_of(key);
  db::Connection::execute(transaction,
                          "SELECT mailroom_create_key($1, decode($2, 'hex'), $3, nullif($4, ''), $5)",
                          id_of(key), hex_text(digest), about.role, about.name, about.permission);
}

bool revoke_key(pqxx::transaction_base& transaction, const std::string& id) {
  return db::Connection::execute(transaction, "SELECT mailroom_revoke_key($1) AS was_good", id)[0].flag(
      "was_good");
}

std::vector<ApiKey> list_keys(db::Connection& connection) {
  std::vector<ApiKey> keys;
  for (
      const auto& row : connection.run(
          "SELECT k.id, k.role, coalesce(k.name, '') AS name, k.permission, "
          "(extract(epoch FROM k.created_at) * 1000000)::bigint AS created_us, "
          "(extract(epoch FROM k.revoked_at) * 1000000)::bigint AS revoked_us, "
          "coalesce(mailroom_key_problem(k.role), '') AS problem FROM mailroom_keys k ORDER BY k.created_at DESC, k.id")) {
    keys.push_back({.id = row.text("id"),
                    .role = row.text("role"),
                    .name = row.text("name"),
                    .permission = row.text("permission"),
                    .created_at = row.moment<std::chrono::microseconds>("created_us"),
                    .revoked_at = row.optional_moment<std::chrono::microseconds>("revoked_us"),
                    .problem = row.text("problem")});
  }
  return keys;
}

}  // namespace mailroom::api_keys
