#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::test {

/// A token is identified by its id and its secret: after a failover an id may be assigned again.
using TokenIdentity = std::pair<std::int64_t, std::string>;

/// How often each token was emitted.
using Emissions = std::map<TokenIdentity, int>;

/// A rewind of a queue: it emits the tokens from `after` (exclusive) to `to` once more.
struct Replay {
  std::int64_t after = 0;
  std::int64_t to = 0;
  std::set<std::int64_t> emitted{};  ///< those of them that were emitted and acknowledged before
};

struct Tally {
  std::size_t committed = 0;
  std::size_t emitted = 0;   ///< different tokens
  std::size_t lost = 0;      ///< committed and not emitted, or not again after a rewind
  std::size_t strange = 0;   ///< emitted and not committed, or not one of the queue's
  std::size_t repeated = 0;  ///< emissions beyond the first of each token, and those that a rewind asked for
  std::size_t untimely = 0;  ///< leased while the queue was paused, beyond its rate, or too late for it
};

Tally& operator+=(Tally& sum, const Tally& tally);

/// Counts for each queue how often each token occurs in the complete lines of `outputs`. Throws for a line
/// that does not parse or a token that does not verify.
std::map<std::string, Emissions> emissions(const std::vector<std::string>& outputs);

/// Returns every existing token of `action` that was due when it was created; of every action if it is empty.
std::vector<TokenIdentity> committed(db::Connection& connection, const std::string& action);

Tally compare(const std::vector<TokenIdentity>& committed, const Emissions& emitted,
              const std::vector<Replay>& replays);

/// True if the cursor of each queue has passed every token that it takes, and no open batch, no gap and no
/// scheduled message is left.
bool is_drained(db::Connection& connection);

}  // namespace mailroom::test
