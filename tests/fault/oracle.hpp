#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::test {

/// A token is known by its id and its secret: after a failover an id may be given out again.
using TokenIdentity = std::pair<std::int64_t, std::string>;

struct Tally {
  std::size_t committed = 0;
  std::size_t emitted = 0;   ///< different tokens
  std::size_t lost = 0;      ///< committed and not emitted
  std::size_t strange = 0;   ///< emitted and not committed
  std::size_t repeated = 0;  ///< lines' tokens beyond the first of each
};

/// How often each token stands in `outputs`, of whole lines alone. Throws for a line that does not parse or a
/// token that does not verify.
std::map<TokenIdentity, int> emissions(const std::vector<std::string>& outputs);

/// Every token that is there and was due when it was made.
std::vector<TokenIdentity> committed(Connection& connection);

Tally compare(const std::vector<TokenIdentity>& committed, const std::map<TokenIdentity, int>& emitted);

/// True when the cursor has passed every token, and no batch is open and no hole is left.
bool is_settled(Connection& connection);

}  // namespace mailroom::test
