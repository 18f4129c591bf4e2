#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "consumer/queue_session.hpp"
#include "support/fake_environment.hpp"

namespace mailroom::test {

enum class Operation { connect, claim, fetch, take_notifications, arrange, check_health };

/// A call that is about to reach the server.
struct Call {
  Operation operation;
  int number;  ///< among all calls, from 1
  int nth;     ///< among those of its operation, from 1
};

/// The fault of a call; after a lost reply the server keeps the effect.
enum class Fault {
  none,
  lost_request,
  lost_reply,
  canceled
};  ///< canceled: the call fails after it took effect

enum class ClaimsAhead { never, before_fetch, after_fetch };

/// A lease of a batch.
struct FakeHold {
  int session;
  TimePoint since;
};

/// A batch of the fake server.
struct FakeBatch {
  std::vector<std::int64_t> tokens;
  int attempt = 1;
  int holder = 0;                 ///< a session
  std::vector<FakeHold> holds{};  ///< one per attempt; the first of an added abandoned batch is made up
  std::optional<BatchCounts> emitted{};
  bool dead = false;

  bool is_open() const { return !emitted && !dead; }
};

/// The server's side of the queue protocol, without SQL: leases end with their session, abandoned batches are
/// leased again with the next attempt, and acknowledgements are fenced by the attempt and may be repeated.
/// Sessions must not outlive this object.
class FakeServer {
 public:
  explicit FakeServer(FakeEnvironment& environment);

  /// Commits due tokens, each of another account.
  void add_tokens(int count, bool notify = true);
  /// Draws an id; its token is invisible until it is committed.
  std::int64_t draw_token();
  /// Commits a token with a drawn id, possibly behind the cursor. It is due until `expires`.
  void commit_token(std::int64_t id, TimePoint expires = TimePoint::max());
  void roll_back_token(std::int64_t id) { open_.erase(id); }
  /// True if a collector was polling when the token was inserted, so that its commit does not notify.
  bool is_silent(std::int64_t id) const { return silent_.contains(id); }
  bool is_somebody_polling() const { return polling_ && holds(*polling_); }
  void notify(Notified of = Notified::poll);
  /// Adds a batch of new tokens whose session has ended.
  void add_abandoned(int tokens);
  std::unique_ptr<QueueSession> connect();
  /// Ends every session, and refuses connections for `duration`.
  void go_away(Milliseconds duration = {});
  /// Cuts the connection of the session of `socket`.
  void cut(int socket) { disconnect(socket - first_socket_, linger); }

  /// Called before each call to choose its fault; may throw the error that the call should throw.
  std::function<Fault(const Call&)> on_call = [](const Call&) { return Fault::none; };
  /// How long the server keeps a session after its connection is lost.
  Milliseconds linger{};
  Milliseconds claim_takes{};
  /// Whether a claim can be made while a batch is read, and takes effect before or after that.
  ClaimsAhead claims_ahead = ClaimsAhead::never;
  int max_read = 10'000;  ///< maximum number of tokens above the cursor that a claim reads

  int calls() const { return calls_; }
  const std::vector<ClaimRequest>& claims() const { return claims_; }
  const std::vector<TimePoint>& claim_times() const { return claim_times_; }
  /// By batch id.
  const std::map<std::int64_t, FakeBatch>& batches() const { return batches_; }
  int open_batches() const;
  std::size_t waiting() const { return waiting_.size(); }
  /// The number of waiting tokens that are due now.
  std::size_t due() const;
  int sessions() const { return static_cast<int>(sessions_.size()); }
  TimePoint session_began(int session) const { return sessions_[static_cast<std::size_t>(session)].begins; }
  std::optional<TimePoint> session_ended(int session) const {
    return sessions_[static_cast<std::size_t>(session)].ends;
  }
  bool is_connected(int socket) const {
    return sessions_[static_cast<std::size_t>(socket - first_socket_)].is_connected;
  }
  std::int64_t last_token() const { return last_token_; }

 private:
  friend class FakeSession;

  struct Session {
    bool is_connected = true;  ///< as its client sees it
    Notified heard = Notified::no;
    TimePoint begins{};
    std::optional<TimePoint> ends{};
    std::optional<std::set<std::int64_t>>
        open_at_first{};  ///< tokens that were not committed when it first asked
  };

  Fault begin_call(Operation operation, int session);
  void end_call(Fault fault, int session);
  void disconnect(int session, Milliseconds after);
  bool holds(int session) const;
  bool readable(std::size_t session) const;

  bool arrange(int session, Waking waking);
  ClaimReply claim(int session, const ClaimRequest& request);
  bool acknowledge(const Receipt& receipt);
  std::map<std::int64_t, FakeBatch>::iterator find_abandoned(int session, const ClaimRequest& request,
                                                             ClaimReply& reply);
  void take(int session, const ClaimRequest& request, ClaimReply& reply);
  /// How many due tokens a claim sees; it has seen every due token up to `last`.
  struct Sight {
    std::size_t count = 0;
    std::int64_t last = 0;
  };
  std::vector<std::int64_t> find_due(std::size_t limit, bool& capped, std::int64_t& last, Sight& sight) const;
  /// The tokens of the lease, each with the time until which it is due.
  std::vector<std::pair<std::int64_t, TimePoint>> tokens_of(const Lease& lease) const;

  FakeEnvironment& environment_;
  int first_socket_;
  int calls_ = 0;
  std::map<Operation, int> calls_of_;
  std::vector<ClaimRequest> claims_;
  std::vector<TimePoint> claim_times_;
  TimePoint away_until_{};
  std::vector<Session> sessions_;
  std::map<std::int64_t, TimePoint> waiting_;  ///< with the time until which each is due
  std::map<std::int64_t, TimePoint> taken_;
  std::int64_t cursor_ = 0;
  std::int64_t last_token_ = 0;
  std::set<std::int64_t> open_;  ///< drawn, and neither committed nor rolled back
  std::set<std::int64_t> silent_;
  std::optional<int> polling_;  ///< the session that keeps inserts from notifying
  std::map<std::int64_t, FakeBatch> batches_;
};

/// Calls `each` with an activation token of an account that is named after the token's id.
void with_token_row(std::int64_t id, TokenState state, const std::function<void(const TokenRow&)>& each);

}  // namespace mailroom::test
