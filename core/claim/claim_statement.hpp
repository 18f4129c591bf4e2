// The claim as a statement on a connection: what it takes, what it brings, and acknowledging without it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "claim/claim_rows.hpp"
#include "claim/queue_session.hpp"
#include "db/connection.hpp"

namespace mailroom::claim {

/// A claim of a session, and what came with it.
struct ClaimedBatch {
  ClaimReply reply{};
  std::optional<db::Rows> rows{};  ///< the tokens of a small batch, one row per token
  TimePoint read_at{};             ///< those of a sink with outcomes
};

/// Calls mailroom_claim().
class ClaimStatement {
 public:
  /// Which consumer claims.
  struct Claimant {
    int collector = 0;  ///< the number that mailroom_attach() returned
    std::vector<std::string> queues{};
    std::string channel{};
    TokenDetail detail{};
  };

  /// Prepares its statements. `connection` must outlive this.
  ClaimStatement(db::Connection& connection, Claimant claimant);

  /// As QueueSession::claim(). For any thread, while no other uses the connection.
  ClaimedBatch run(const ClaimRequest& request);
  /// As QueueSession::report().
  void report(const Receipt& late);

 private:
  db::Rows run_claim(const char* statement, const ClaimRequest& request);
  ClaimReply acknowledge_alone(const Receipt& receipt);
  /// Replies are others' words, in any language.
  std::optional<std::string> storable_outcomes(const Receipt& receipt) const;
  const std::string& queue_of(const ClaimRequest& request) const {
    return request.queue.empty() ? claimant_.queues.front() : request.queue;
  }

  /// The reply to a routine poll of an idle queue; nullopt if a claim has to find out.
  std::optional<ClaimReply> poll(const std::string& queue);

  db::Connection& connection_;
  Claimant claimant_;
  bool may_release_ = false;
  bool had_messages_ = false;  ///< the last batch, if its tokens came with it
};

}  // namespace mailroom::claim
