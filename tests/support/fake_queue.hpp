#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "queue/queue_session.hpp"
#include "support/fake_surroundings.hpp"

namespace mailroom::test {

enum class Operation { connect, claim, fetch, take_notifications, arrange, check_health };

/// A call that is about to reach the server.
struct Call {
  Operation operation;
  int number;  ///< among all calls, from 1
  int nth;     ///< among those of its operation, from 1
};

/// What befalls a call; a lost reply is one whose effect the server keeps.
enum class Fault {
  none,
  lost_request,
  lost_reply,
  canceled
};  ///< canceled: it fails after it had its effect

/// A hand-out of a batch.
struct FakeHold {
  int session;
  TimePoint since;
};

/// What the fake server knows of a batch.
struct FakeBatch {
  std::vector<std::int64_t> tokens;
  int attempt = 1;
  int holder = 0;                 ///< a session
  std::vector<FakeHold> holds{};  ///< of the attempts; an orphan's first is not known
  std::optional<BatchCounts> emitted{};
  bool set_aside = false;

  bool is_open() const { return !emitted && !set_aside; }
};

/// The server's side of the queue protocol, without SQL: leases that end with their session, orphans handed
/// out again with the next attempt, acknowledgements fenced by it and good any number of times. Sessions live
/// as long as this does, at the most.
class FakeServer {
 public:
  explicit FakeServer(FakeSurroundings& surroundings);

  /// Commits tokens, each due and of an account of its own.
  void add_tokens(int count, bool notify = true);
  /// Draws an id of which nobody else knows before it is committed.
  std::int64_t draw_token();
  /// Commits a token whose id was drawn, perhaps behind the cursor. It is due until `expires`.
  void commit_token(std::int64_t id, TimePoint expires = TimePoint::max());
  void roll_back_token(std::int64_t id) { open_.erase(id); }
  /// True if a collector was awake when the token was inserted, so that nobody is notified of its commit.
  bool is_silent(std::int64_t id) const { return silent_.contains(id); }
  bool is_somebody_awake() const { return awake_ && holds(*awake_); }
  void notify(Notified of = Notified::look);
  /// A batch of new tokens whose collector is gone.
  void add_orphan(int tokens);
  std::unique_ptr<QueueSession> connect();
  /// Every session ends, and nobody can connect for `duration`.
  void go_away(Milliseconds duration = {});
  /// The session of `socket` loses its connection.
  void cut(int socket) { disconnect(socket - first_socket_, linger); }

  /// Asked before each call; may throw what the call should.
  std::function<Fault(const Call&)> on_call = [](const Call&) { return Fault::none; };
  /// How long the server keeps a session whose client has lost the connection.
  Milliseconds linger{};
  Milliseconds claim_takes{};
  int most_read = 10'000;  ///< tokens above the cursor that a claim looks at

  int calls() const { return calls_; }
  const std::vector<ClaimRequest>& claims() const { return claims_; }
  const std::vector<TimePoint>& claim_times() const { return claim_times_; }
  /// By batch id.
  const std::map<std::int64_t, FakeBatch>& batches() const { return batches_; }
  int open_batches() const;
  std::size_t waiting() const { return waiting_.size(); }
  /// Of those waiting, the ones that are due now.
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
        unsettled{};  ///< tokens that were not committed when it asked first
  };

  Fault begin_call(Operation operation, int session);
  void end_call(Fault fault, int session);
  void disconnect(int session, Milliseconds after);
  bool holds(int session) const;
  bool readable(std::size_t session) const;

  bool arrange(int session, Waking waking);
  ClaimReply claim(int session, const ClaimRequest& request);
  bool acknowledge(const Receipt& receipt);
  std::map<std::int64_t, FakeBatch>::iterator find_orphan(int session, const ClaimRequest& request,
                                                          ClaimReply& reply);
  void take(int session, const ClaimRequest& request, ClaimReply& reply);
  /// The due tokens that a claim comes across, and the id up to which it saw each.
  struct Sight {
    std::size_t count = 0;
    std::int64_t last = 0;
  };
  std::vector<std::int64_t> find_due(std::size_t limit, bool& capped, std::int64_t& last, Sight& sight) const;
  /// With until when each is due.
  std::vector<std::pair<std::int64_t, TimePoint>> tokens_of(const Lease& lease) const;

  FakeSurroundings& surroundings_;
  int first_socket_;
  int calls_ = 0;
  std::map<Operation, int> calls_of_;
  std::vector<ClaimRequest> claims_;
  std::vector<TimePoint> claim_times_;
  TimePoint away_until_{};
  std::vector<Session> sessions_;
  std::map<std::int64_t, TimePoint> waiting_;  ///< and until when they are due
  std::map<std::int64_t, TimePoint> taken_;
  std::int64_t cursor_ = 0;
  std::int64_t last_token_ = 0;
  std::set<std::int64_t> open_;  ///< drawn, and neither committed nor rolled back
  std::set<std::int64_t> silent_;
  std::optional<int> awake_;  ///< the session that keeps inserts from notifying
  std::map<std::int64_t, FakeBatch> batches_;
};

/// An activation token of an account that is named after its id.
void with_token_row(std::int64_t id, TokenState state, const std::function<void(const TokenRow&)>& each);

}  // namespace mailroom::test
