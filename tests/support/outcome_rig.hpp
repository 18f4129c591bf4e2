// A queue with a consumer that records the outcomes of its deliveries.

#pragma once

#include "support/rewind_rig.hpp"

namespace mailroom::test {

inline claim::TokenOutcome outcome(std::int64_t token, fate::Outcome state, double wait = 0) {
  return {.token = token,
          .state = state,
          .attempts = 1,
          .wait = std::chrono::duration<double>(wait),
          .sink = "relay:25",
          .address = "user" + std::to_string(token) + "@test.example",
          .code = state == fate::Outcome::accepted ? 250 : 451,
          .reply = fate::outcome_name(state)};
}

/// A batch that went back because the receiver was unavailable.
inline claim::TokenOutcome given_back(std::int64_t token) {
  return {.token = token, .state = fate::Outcome::deferred, .wait = std::chrono::duration<double>(-1)};
}

inline claim::Receipt receipt_of(const claim::Lease& lease, std::vector<claim::TokenOutcome> outcomes) {
  claim::Receipt receipt{lease, {}};
  for (const auto& each : outcomes) {
    if (each.state == fate::Outcome::accepted)
      ++receipt.counts.emitted;
    else
      receipt.counts.skipped_ids.push_back(each.token);
  }
  receipt.outcomes = std::move(outcomes);
  return receipt;
}

/// A queue with a consumer that records outcomes.
struct OutcomeRig : RewindRig {
  OutcomeRig() { session = attach_sender(database); }

  claim::ClaimReply claim(int limit, std::optional<claim::Receipt> receipt = {}) {
    return session->claim({.limit = limit, .partial = true, .receipt = std::move(receipt)});
  }

  /// Claims up to `limit` tokens, and acknowledges each with `state`; returns their ids.
  Ids deliver(int limit, fate::Outcome state, double wait = 0) {
    const auto lease = claim(limit).lease;
    if (!lease) return {};
    const auto ids = fetch_ids(*session, *lease);
    std::vector<claim::TokenOutcome> outcomes;
    for (const auto id : ids)
      outcomes.push_back(outcome(id, state, wait));
    claim(0, receipt_of(*lease, outcomes));
    return ids;
  }

  /// `accepted 1, deferred 2 waits`, by token.
  std::string deliveries() {
    return value<std::string>(*connection, R"(
SELECT coalesce(string_agg(state || ' ' || attempts || CASE WHEN not_before IS NULL THEN '' ELSE ' waits' END,
                           ', ' ORDER BY token), '') FROM mailroom_deliveries)");
  }
};

}  // namespace mailroom::test
