#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "claim/queue_session.hpp"
#include "support/fake_environment.hpp"
#include "support/fake_queue.hpp"

namespace mailroom::test {

enum class ServerOperation { connect, claim, fetch, row, take_notifications, arrange, begin, check_health };

/// A call that is about to reach the server.
struct Call {
  ServerOperation operation;
  int number;  ///< among all calls, from 1
  int nth;     ///< among those of its operation, from 1
};

/// The fault of a call; after a lost reply the server keeps the effect.
enum class ServerFault {
  none,
  lost_request,
  lost_reply,
  canceled
};  ///< canceled: the call fails after it took effect

enum class ClaimsAhead { never, before_fetch, after_fetch, after_a_row };

/// A server with one queue, in virtual time: its tokens and sessions, and the faults of their calls. Sessions
/// must not outlive this object.
class FakeServer {
 public:
  /// `make_queue`: makes its queue; by default a FakeQueue.
  explicit FakeServer(FakeEnvironment& environment, const MakeFakeQueue& make_queue = {});

  /// Commits due tokens, each of another account.
  void add_tokens(int count, bool notify = true);
  /// Draws an id; its token is invisible until it is committed.
  std::int64_t draw_token();
  /// Commits a token with a drawn id, possibly behind the cursor. It is due until `expires`.
  void commit_token(std::int64_t id, const FakeToken& token);
  void commit_token(std::int64_t id, TimePoint expires = TimePoint::max()) {
    commit_token(id, FakeToken{.expires = expires});
  }
  /// A scheduled message: a token is made of it when it is released at this time or later.
  void schedule(TimePoint at) { scheduled_.insert(at); }
  std::size_t scheduled() const { return scheduled_.size(); }
  void roll_back_token(std::int64_t id) { tokens_.open.erase(id); }
  /// True if a collector was polling when the token was inserted, so that its commit does not notify.
  bool is_silent(std::int64_t id) const { return silent_.contains(id); }
  bool is_somebody_polling() const { return polling_ && holds(*polling_); }
  /// Notifies all sessions but `except`.
  void notify(claim::Notified of = claim::Notified::poll, std::optional<int> except = std::nullopt);
  /// Adds a batch of new tokens whose session has ended.
  void add_abandoned(int tokens);
  /// `delivers`: the session records outcomes.
  std::unique_ptr<claim::QueueSession> connect(bool delivers = false);
  /// Ends every session, and refuses connections for `duration`.
  void go_away(Milliseconds duration = {});
  /// Cuts the connection of the session of `socket`.
  void cut(int socket) { disconnect(session_of(socket), linger); }

  /// Called before each call to choose its fault; may throw the error that the call should throw.
  std::function<ServerFault(const Call&)> on_call = [](const Call&) { return ServerFault::none; };
  /// How long the server keeps a session after its connection is lost.
  Milliseconds linger{};
  Milliseconds claim_takes{};
  /// Whether a claim can be made while a batch is read, and takes effect before or after that; or once the
  /// sink has a row of it, as soon as the consumer asks.
  ClaimsAhead claims_ahead = ClaimsAhead::never;

  int calls() const { return calls_; }
  const std::vector<claim::ClaimRequest>& claims() const { return claims_; }
  const std::vector<TimePoint>& claim_times() const { return claim_times_; }
  FakeQueue& queue() { return *queue_; }
  FakeTokens& tokens() { return tokens_; }
  /// By batch id.
  const std::map<std::int64_t, FakeBatch>& batches() const { return queue_->batches(); }
  int open_batches() const;
  std::size_t waiting() const { return queue_->waiting().size(); }
  /// The number of waiting tokens that are due now.
  std::size_t due() const { return queue_->due(); }
  int sessions() const { return static_cast<int>(sessions_.size()); }
  TimePoint session_began(int session) const { return sessions_[static_cast<std::size_t>(session)].begins; }
  std::optional<TimePoint> session_ended(int session) const {
    return sessions_[static_cast<std::size_t>(session)].ends;
  }
  bool is_connected(int socket) const {
    return sessions_[static_cast<std::size_t>(session_of(socket))].is_connected;
  }
  std::int64_t last_token() const { return tokens_.last; }
  int session_of(int socket) const { return socket - first_socket_; }
  /// True until the server has ended the session.
  bool holds(int session) const;

 private:
  friend class FakeSession;

  struct Session {
    bool is_connected = true;  ///< as its client sees it
    bool delivers = false;
    std::set<claim::Notified> heard{};
    TimePoint begins{};
    std::optional<TimePoint> ends{};
    std::optional<std::set<std::int64_t>>
        open_at_first{};  ///< tokens that were not committed when it first asked
  };

  ServerFault begin_call(ServerOperation operation, int session);
  void end_call(ServerFault fault, int session);
  void disconnect(int session, Milliseconds after);
  bool readable(std::size_t session) const;

  bool arrange(int session, claim::Waking waking);
  claim::ClaimReply claim(int session, const claim::ClaimRequest& request);
  int release();
  claim::Notified take_notifications(int session);
  /// What became of the token, for a session that records outcomes.
  FakeDelivery earlier(int session, std::int64_t token) const;
  /// The tokens of the lease that exist.
  std::map<std::int64_t, FakeToken> tokens_of(const claim::Lease& lease) const;

  FakeEnvironment& environment_;
  int first_socket_;
  int calls_ = 0;
  std::map<ServerOperation, int> calls_of_;
  std::vector<claim::ClaimRequest> claims_;
  std::vector<TimePoint> claim_times_;
  TimePoint away_until_{};
  std::vector<Session> sessions_;
  FakeTokens tokens_;
  std::multiset<TimePoint> scheduled_;
  std::set<std::int64_t> silent_;
  std::optional<int> polling_;  ///< the session that keeps inserts from notifying
  std::unique_ptr<FakeQueue> queue_;
};

}  // namespace mailroom::test
