#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "crypto/token.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// A batch that contained a token.
struct TokenEmission {
  std::int64_t batch = 0;
  std::string queue;
  std::optional<std::string> emitted_at{};  ///< ISO 8601, UTC; nullopt while the batch is leased
  int attempts = 0;
  bool is_certain = true;  ///< false: the id may have belonged to another token then
};

/// A token as the database records it. Times are seconds since 1970.
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

/// Returns the token with this secret and `action`, or nullopt: a signature for the other action names a
/// token that does not exist. Only reads.
std::optional<TokenRecord> find_token(Connection& connection, const Secret& secret, Action action);

/// Returns the id of the token with this secret and any action, or nullopt. Only reads.
std::optional<std::int64_t> find_token_id(Connection& connection, const Secret& secret);

}  // namespace mailroom
