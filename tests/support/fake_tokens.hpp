#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "claim/queue_session.hpp"
#include "support/actions.hpp"

namespace mailroom::test {

/// A token of the fake server, with an account of its own.
struct FakeToken {
  TimePoint expires = TimePoint::max();
  const queue::Action* action = activation_action();
  bool is_consumed = false;
  bool has_wrong_status = false;  ///< of its account
};

inline claim::TokenState state_of(const FakeToken& token, TimePoint now) {
  if (token.is_consumed) return claim::TokenState::consumed;
  if (now >= token.expires) return claim::TokenState::expired;
  return token.has_wrong_status ? claim::TokenState::wrong_status : claim::TokenState::due;
}

/// The table of tokens and its sequence.
struct FakeTokens {
  std::map<std::int64_t, FakeToken> committed;
  std::set<std::int64_t> open;  ///< drawn, and neither committed nor rolled back
  std::int64_t last = 0;        ///< the newest id drawn
};

}  // namespace mailroom::test
