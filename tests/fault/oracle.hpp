#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::test {

/// A token is identified by its id and its secret: after a failover an id may be assigned again.
using TokenIdentity = std::pair<std::int64_t, std::string>;

struct Tally {
  std::size_t committed = 0;
  std::size_t emitted = 0;   ///< different tokens
  std::size_t lost = 0;      ///< committed and not emitted
  std::size_t strange = 0;   ///< emitted and not committed
  std::size_t repeated = 0;  ///< emissions beyond the first of each token
};

/// Counts how often each token occurs in the complete lines of `outputs`. Throws for a line that does not
/// parse or a token that does not verify.
std::map<TokenIdentity, int> emissions(const std::vector<std::string>& outputs);

/// Returns every existing token that was due when it was created.
std::vector<TokenIdentity> committed(Connection& connection);

Tally compare(const std::vector<TokenIdentity>& committed, const std::map<TokenIdentity, int>& emitted);

/// True if the cursor has passed every token, and no open batch and no gap is left.
bool is_drained(Connection& connection);

}  // namespace mailroom::test
