// What the database knows of a token that an operator has in hand: its state, account and emissions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accounts/account_lookup.hpp"
#include "crypto/token.hpp"
#include "db/connection.hpp"

namespace mailroom::accounts {

/// A batch that contained a token.
struct TokenEmission {
  std::int64_t batch = 0;
  std::string queue;
  std::optional<Moment> emitted_at{};  ///< nullopt while the batch is leased
  int attempts = 0;
  bool is_certain = true;  ///< false: the id may have belonged to another token then
};

/// The message that made a token.
struct TokenMessage {
  std::int64_t id = 0;
  std::string recipient{};  ///< empty: it goes to its account
  std::string reference{};  ///< of the application; empty for none
};

/// A token as the database records it.
struct TokenRecord {
  std::int64_t id = 0;
  std::string state;  ///< `due`, `consumed`, `expired` or `wrong status`
  Moment created_at{};
  Moment expires_at{};
  std::optional<Moment> consumed_at{};
  std::optional<AccountRecord> account{};  ///< without its email; nullopt: it has none
  Moment now{};                            ///< the server's clock
  std::optional<TokenMessage> message{};
  std::vector<TokenEmission> emissions{};
};

/// What a genuine token names. A signature for another action names a token that does not exist.
struct TokenName {
  crypto::Secret secret{};
  std::string action{};  ///< as the database names it
};

/// Returns the token of each name, in their order, or nullopt. Reads them together: one statement for the
/// tokens and, with `with_emissions`, a few for their batches, in other transactions. Only reads.
std::vector<std::optional<TokenRecord>> find_tokens(db::Connection& connection,
                                                    const std::vector<TokenName>& names, bool with_emissions);

/// The same for one token, with its emissions.
std::optional<TokenRecord> find_token(db::Connection& connection, const crypto::Secret& secret,
                                      const std::string& action);

/// Returns the id of the token with this secret and any action, or nullopt. Only reads.
std::optional<std::int64_t> find_token_id(db::Connection& connection, const crypto::Secret& secret);

}  // namespace mailroom::accounts
