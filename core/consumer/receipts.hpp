// The batches that are finished and not yet acknowledged.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "consumer/session_keeper.hpp"

namespace mailroom::consumer {

/// Receipts of batches, the oldest first. They outlive the session: after a reconnect the consumer still
/// acknowledges them, and nothing is repeated, if no other consumer was connected or all sessions ended (a
/// server restart: the consumers wait for each other). A consumer that stayed connected takes over the
/// unacknowledged batch of an ended session at once, and repeats it if it was written.
class Receipts {
 public:
  /// The references must outlive this.
  Receipts(SessionKeeper& sessions, process::Environment& environment, Log& log)
      : sessions_(sessions), environment_(environment), log_(log) {}

  bool empty() const { return receipts_.empty(); }
  /// True if one is of this lease.
  bool holds(const claim::Lease& lease) const {
    return std::ranges::any_of(receipts_, [&](const auto& receipt) { return receipt.lease == lease; });
  }
  std::vector<claim::Lease> leases() const;
  const claim::Receipt& add(claim::Receipt receipt) { return receipts_.emplace_back(std::move(receipt)); }

  /// True if one claim for `queue` can acknowledge all of them.
  bool fit_claim(const std::string& queue) const;
  /// Acknowledges all but the last, and the last if it is of another queue than `queue`.
  void fit_into_claim(const std::string& queue);
  /// The oldest one; nullopt if there is none. It stays until it is acknowledged.
  std::optional<claim::Receipt> oldest() const;
  /// A claim has acknowledged the batch of `request`, if it has one.
  void acknowledged_by(const claim::ClaimRequest& request);

  void acknowledge_oldest();
  void acknowledge_all();
  /// Before the consumer leaves: tries for some seconds, on new sessions if it must, and after a stop request
  /// without the queue's lock. Throws what the last attempt threw; Error(locked) without the lock.
  void acknowledge_to_leave();
  /// Their batches will be emitted again.
  void forget() { receipts_.clear(); }

 private:
  void acknowledge(const claim::ClaimRequest& request);
  void acknowledge_without_lock();

  SessionKeeper& sessions_;
  process::Environment& environment_;
  Log& log_;
  std::deque<claim::Receipt> receipts_;
};

}  // namespace mailroom::consumer
