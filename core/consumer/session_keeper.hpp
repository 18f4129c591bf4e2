// Keeps a consumer connected: makes its session, notices its end, and makes the next one.
#pragma once

#include <memory>

#include "base/log.hpp"
#include "claim/queue_session.hpp"
#include "consumer/consumer_observer.hpp"
#include "db/errors.hpp"
#include "process/environment.hpp"
#include "process/retry.hpp"

namespace mailroom::consumer {

/// The session of a consumer, one after the other as they are lost.
class SessionKeeper {
 public:
  /// How to connect, and after how long a silence to check the connection.
  struct Options {
    claim::SessionFactory connect;
    Milliseconds healthcheck_interval{};
  };

  /// `environment`, `log` and `observer` must outlive this.
  SessionKeeper(Options options, process::Environment& environment, Log& log, ConsumerObserver& observer);

  /// Takes effect with the next session; the interval at once.
  void configure(Options options) { options_ = std::move(options); }

  /// Makes the first session, within `patience`; 0: tries once. Makes none after a stop request. Throws what
  /// `connect` threw when no retry has helped.
  void connect_first(Milliseconds patience);
  /// Makes a session if there is none, after a pause that grows. False after a stop request. Throws what
  /// `connect` throws.
  bool connect();
  /// Makes a session if there is none, at once and also after a stop request: only to acknowledge.
  claim::QueueSession& connect_to_leave();
  /// Ends the session. What it has leased can be taken over.
  void drop();
  /// The same, and the next session may be one with another database.
  void leave();
  /// Has the session record an operation of this consumer, or says in the log that its role may not.
  void record(const std::string& kind, const std::string& details);

  /// QueueSession::definitions(). Tells the observer the actions.
  std::vector<queue::QueueRecord> definitions();
  /// QueueSession::release(). Says in the log, once, that its role may not.
  int release();

  /// Throws ConnectionLost if there is none.
  claim::QueueSession& session();
  /// Null if there is none.
  claim::QueueSession* session_or_null() { return session_.get(); }
  /// Tells the sessions apart; 0 if there is none.
  int number() const { return session_ ? number_ : 0; }
  /// False for a while after a reconnect: other consumers may still reconnect and acknowledge their batches.
  bool may_take_over(TimePoint now) const { return now >= take_over_from_; }

  /// While the sink waits: notices that the session has ended, and makes the next one. Does not wait.
  void keep();
  /// A statement has failed while the sink waits: drops the session if another one may help. Rethrows `error`
  /// if nothing helps.
  void failed(const Error& error);
  /// Drops the session, so that connect() makes another one.
  void lost(const db::ConnectionLost& error);
  /// Prepares a retry; false if a retry does not help.
  bool fixes(const db::DatabaseError& error);
  /// Waits for longer each time that it is called without a claim in between.
  void pause() { environment_.pause_for(backoff_.next()); }

  /// Claims on the session, and takes note of the reply.
  claim::ClaimReply claim(const claim::ClaimRequest& request);
  /// Takes note of the reply to a claim: the session works.
  void note_claim(const claim::ClaimRequest& request, const claim::ClaimReply& reply,
                  std::chrono::nanoseconds took);
  /// Waits for a notification or a signal, until `until`; or checks the connection if that is due.
  void wait(TimePoint until);

 private:
  void adopt(std::unique_ptr<claim::QueueSession> session);
  /// Notices a database that was restored, or a standby that had not received everything.
  void compare_with_known();
  void note_return_to(std::int64_t newest);
  void report(const claim::ClaimReply& reply);

  Options options_;
  process::Environment& environment_;
  Log& log_;
  ConsumerObserver& observer_;
  process::Backoff backoff_;
  process::RetryLog retries_;
  std::unique_ptr<claim::QueueSession> session_;
  int number_ = 0;
  bool may_not_release_ = false;
  std::int64_t newest_known_ = 0;  ///< the newest batch that it has claimed; 0 if there is none
  TimePoint take_over_from_{};
  TimePoint last_round_trip_{};
  TimePoint next_try_{};  ///< of keep()
};

}  // namespace mailroom::consumer
