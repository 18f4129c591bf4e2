#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "crypto/token.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// A batch that a token was in.
struct TokenEmission {
  std::int64_t batch = 0;
  std::string queue;
  std::optional<std::string> emitted_at{};  ///< ISO 8601, UTC; nothing while the batch is leased
  int attempts = 0;
  bool is_certain = true;  ///< false: the id may have been another token's then
};

/// What the database knows of a token. Times are seconds since 1970.
struct TokenRecord {
  std::int64_t id = 0;
  std::string state;  ///< `due`, `consumed`, `expired` or `wrong status`
  std::int64_t created_at = 0;
  std::int64_t expires_at = 0;
  std::optional<std::int64_t> consumed_at{};
  std::int64_t account = 0;
  std::string login;
  std::string status;
  std::int64_t now = 0;  ///< the server's clock
  std::vector<TokenEmission> emissions{};
};

/// The token with this secret, if there is one, made for `action`: a signature over the secret for the other
/// action speaks of a token that does not exist. Reads alone.
std::optional<TokenRecord> find_token(Connection& connection, const Secret& secret, Action action);

/// The id of the token with this secret, whatever its action. Reads alone.
std::optional<std::int64_t> find_token_id(Connection& connection, const Secret& secret);

}  // namespace mailroom
