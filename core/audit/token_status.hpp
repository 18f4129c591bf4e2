// What audit says of one token: its records become the evidence that fate judges. Pure: token_facts.hpp has
// read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/waiting_turn.hpp"
#include "fate/fate.hpp"
#include "feed/event.hpp"

namespace mailroom::audit {

/// The position of a token in a queue.
struct TokenPosition {
  std::string queue{};
  std::int64_t cursor = 0;
  fate::TokenPlace gap =
      fate::TokenPlace::none;     ///< in_gap or in_replay: below the cursor, and the next claims take it
  bool takes = true;              ///< the queue takes tokens of this action
  bool records_complete = false;  ///< the records reach back to the token's creation
  std::optional<queue::BatchRecord>
      skip{};           ///< the first claim whose cursor reached it, if no batch holds it
  bool missed = false;  ///< the cursor passed its id before it was created
};

/// The data about a token. If it does not exist, only its id and estimates of created_at and expires_at.
struct TokenFacts : feed::StoredToken {
  bool exists = true;                              ///< false if it was deleted or never committed
  std::vector<queue::BatchRecord> batches{};       ///< those that hold it, ordered by id
  bool id_was_anothers = false;                    ///< another token had its id before it was created
  std::vector<feed::Operation> operations{};       ///< those that may have touched it
  std::vector<TokenPosition> queues{};             ///< those that take its action; the requested ones first
  std::vector<feed::DeliveryRecord> deliveries{};  ///< without outcomes of an earlier token with its id
  std::string trace_id{};                          ///< of the application's trace; empty for none
};

/// What became of a token that no delivery tells of.
struct TokenStatus {
  fate::Outcome outcome = fate::Outcome::unexplained;
  fate::Fault fault = fate::Fault::none;
  int times = 0;                              ///< number of batches that certainly emitted it
  int maybe = 0;                              ///< number of batches that may have emitted it
  std::optional<queue::BatchRecord> batch{};  ///< the batch that decides the outcome
  /// If emitted: leased, waiting, in_gap or in_replay. If skipped: where it is, and the queue has not come to
  /// it yet.
  std::optional<fate::Outcome> next{};
  std::string queue{};  ///< where it waits or was skipped, or which does not take it
  /// Of skipped: `expired`, `consumed`, `wrong status` or `invalid`. Of a token that waits and is not due,
  /// why.
  std::string reason{};
  bool reason_certain = false;               ///< recorded, not derived from the present state
  std::optional<queue::BatchRecord> skip{};  ///< of skipped: the claim that skipped it, if no batch holds it
  std::optional<feed::Operation> operation{};  ///< of moved_past
  std::optional<WaitingTurn> turn{};           ///< of waiting, where it was asked for
};

/// What became of the delivery of a token in a queue.
struct TokenDelivery {
  feed::DeliveryRecord delivery{};
  fate::Outcome outcome = fate::Outcome::unknown;
  fate::Fault fault = fate::Fault::none;
  int accepted = 0;                  ///< how many attempts were accepted
  bool maybe = false;                ///< none was accepted for certain, but one may have been
  int perhaps = 0;                   ///< how many others may have been accepted, besides those in `accepted`
  feed::DeliveryAttempt decisive{};  ///< the last accepted attempt; without one, the last outcome
  std::optional<fate::Outcome>
      next{};                      ///< leased, waiting, in_gap or in_replay; nullopt if no queue holds it
  bool is_of_other_queue = false;  ///< not of the requested queue
};

/// Derives the status of a token from its batches and positions, without its deliveries.
TokenStatus judge_token(const TokenFacts& facts);

/// Derives the status of each of its deliveries, in the order of `queues`.
std::vector<TokenDelivery> judge_deliveries(const TokenFacts& facts);

/// What audit says of a token: of its deliveries, and of the queues without one.
struct TokenReport {
  TokenFacts token;    ///< with deliveries: what without_deliveries() leaves
  TokenStatus status;  ///< of queues without a delivery
  std::vector<TokenDelivery> deliveries{};
  std::string queue{};  ///< in `by_queue`: the queue
  std::vector<TokenReport>
      by_queue{};  ///< if several queues were requested: those that take it or have a record of it

  /// False if there is nothing to tell but its deliveries.
  bool has_status() const { return deliveries.empty() || status.batch.has_value(); }
};

TokenReport report_on(TokenFacts token);

/// A report for each of `queues` that takes the token, and for each other queue with a record of it, such as
/// one that was dropped.
std::vector<TokenReport> reports_by_queue(const TokenFacts& token, const std::vector<std::string>& queues);

/// What is known of a token in one queue.
TokenFacts in_queue(TokenFacts facts, const std::string& queue);

/// Removes from a token with deliveries the batches and queues that its deliveries tell about.
TokenFacts without_deliveries(TokenFacts facts);

/// Sets the deliveries of the token: those of `deliveries` with its id, without outcomes before it was
/// created, which are of an earlier token with its id.
void set_deliveries(TokenFacts& facts, const std::vector<feed::DeliveryRecord>& deliveries);

/// The last revocation of the token; null if there is none.
const feed::Operation* revocation_of(const TokenFacts& token);

}  // namespace mailroom::audit
