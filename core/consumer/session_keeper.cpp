// Retries with back-off, and logs an outage less and less often.

#include "consumer/session_keeper.hpp"

#include <algorithm>
#include <poll.h>
#include <utility>

#include "base/json.hpp"

namespace mailroom::consumer {
namespace {

constexpr Milliseconds take_over_grace{1500};
constexpr Milliseconds kept_pause{200};  ///< between attempts to connect, while the sink waits

}  // namespace

SessionKeeper::SessionKeeper(Options options, process::Environment& environment, Log& log,
                             ConsumerObserver& observer)
    : options_(std::move(options)),
      environment_(environment),
      log_(log),
      observer_(observer),
      backoff_(environment.random_seed()),
      retries_(log) {}

void SessionKeeper::connect_first(Milliseconds patience) {
  const auto give_up = environment_.now() + patience;
  while (!environment_.stop_requested()) {
    observer_.turned(environment_.now());
    try {
      return adopt(options_.connect());
    } catch (const Error& error) {
      if (environment_.stop_requested()) return;
      const bool gives_up = environment_.now() >= give_up && !db::is_pid_locked(error);
      if (db::retry_for(error) != db::Retry::new_session || gives_up) throw;
      retries_.failed(db::is_pid_locked(error) ? "reconnecting" : "waiting for the database",
                      db::reason_of(error), environment_.now());
    }
    environment_.sleep_for(backoff_.next());
  }
}

bool SessionKeeper::connect() {
  if (session_) return true;
  environment_.sleep_for(backoff_.next());
  if (environment_.stop_requested()) return false;
  adopt(options_.connect());
  take_over_from_ = environment_.now() + take_over_grace;
  return true;
}

claim::QueueSession& SessionKeeper::connect_to_leave() {
  if (session_) return *session_;
  session_ = options_.connect();
  ++number_;
  return *session_;
}

claim::QueueSession& SessionKeeper::session() {
  if (!session_) throw db::ConnectionLost("the session has ended");
  return *session_;
}

void SessionKeeper::adopt(std::unique_ptr<claim::QueueSession> session) {
  session_ = std::move(session);
  ++number_;
  compare_with_known();
  last_round_trip_ = environment_.now();
  observer_.connected();
  if (retries_.is_news()) log_.info("connected");
}

void SessionKeeper::compare_with_known() {
  if (newest_known_ == 0) return;
  const auto newest = session_->newest_batch();
  if (newest && *newest < newest_known_) note_return_to(*newest);
}

void SessionKeeper::note_return_to(std::int64_t newest) {
  const auto known = std::exchange(newest_known_, newest);
  log_.error("the database has gone back to an older state, by a restore or a failover",
             {{"newest_batch", newest}, {"claimed_before", known}});
  record("went back", plain_json(nlohmann::json{{"newest", newest}, {"known", known}}));
}

void SessionKeeper::record(const std::string& kind, const std::string& details) {
  try {
    session().record(kind, details);
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != db::sqlstate::insufficient_privilege) throw;
    // The roles are older than the function. The log has the event.
    log_.debug("not recorded: the role may not execute mailroom_record_event()", {{"operation", kind}});
  }
}

std::vector<queue::QueueRecord> SessionKeeper::definitions() {
  auto definitions = session().definitions();
  observer_.learned(session().action_names());
  return definitions;
}

int SessionKeeper::release() {
  try {
    return session().release();
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != db::sqlstate::insufficient_privilege) throw;
    if (!std::exchange(may_not_release_, true))
      log_.warn("scheduled messages are not sent: the role may not execute mailroom_release()",
                {{"reason", error.what()}});
    return 0;
  }
}

void SessionKeeper::leave() {
  drop();
  newest_known_ = 0;
}

void SessionKeeper::drop() {
  if (session_) observer_.disconnected();
  session_.reset();
}

void SessionKeeper::keep() {
  try {
    if (session_) {
      pollfd socket{.fd = session_->socket(), .events = POLLIN, .revents = 0};
      if (poll(&socket, 1, 0) > 0) session_->check_health();
      return;
    }
    const auto now = environment_.now();
    if (now < next_try_) return;
    next_try_ = now + kept_pause;
    adopt(options_.connect());
    take_over_from_ = environment_.now() + take_over_grace;
  } catch (const Error& error) {
    // What another session does not help against, the loop meets when the sink has its answers.
    if (db::retry_for(error) != db::Retry::none) failed(error);
  }
}

void SessionKeeper::failed(const Error& error) {
  const auto fix = db::retry_for(error);
  if (fix == db::Retry::none) throw error;
  if (fix != db::Retry::new_session)
    return log_.warn("statement failed, retrying", {{"reason", error.what()}});
  if (session_) retries_.worked();
  retries_.failed("connection lost", db::reason_of(error), environment_.now());
  drop();
}

void SessionKeeper::lost(const db::ConnectionLost& error) {
  if (!session_ && environment_.stop_requested()) return;
  if (session_) retries_.worked();
  retries_.failed("connection lost", error.what(), environment_.now());
  drop();
}

bool SessionKeeper::fixes(const db::DatabaseError& error) {
  const auto fix = db::retry_for(error);
  if (fix == db::Retry::new_session) {
    retries_.failed(db::is_pid_locked(error) ? "reconnecting" : "the server accepts no writes, reconnecting",
                    db::reason_of(error), environment_.now());
    drop();
  } else if (fix == db::Retry::same_session && !environment_.stop_requested()) {
    log_.warn("statement failed, retrying", {{"reason", error.what()}});
    environment_.sleep_for(backoff_.next());
  }
  return fix != db::Retry::none;
}

claim::ClaimReply SessionKeeper::claim(const claim::ClaimRequest& request) {
  const auto started = environment_.now();
  auto reply = session().claim(request);
  note_claim(request, reply, environment_.now() - started);
  return reply;
}

void SessionKeeper::note_claim(const claim::ClaimRequest& request, const claim::ClaimReply& reply,
                               std::chrono::nanoseconds took) {
  last_round_trip_ = environment_.now();
  backoff_.reset();
  retries_.worked();
  // A restore of the data alone leaves the session as it is, and the ids of batches begin anew.
  const bool is_new = reply.lease && reply.lease->attempt == 1;
  if (is_new && reply.lease->batch <= newest_known_) note_return_to(reply.lease->batch);
  if (reply.lease) newest_known_ = std::max(newest_known_, reply.lease->batch);
  observer_.claimed(
      {.queue = request.queue, .reply = reply, .only_acknowledged = request.limit == 0, .took = took});
  report(reply);
}

void SessionKeeper::report(const claim::ClaimReply& reply) {
  if (reply.receipt_void) {
    log_.warn("a batch was taken over before it was acknowledged: it may have been emitted twice");
  }
  if (reply.dead) {
    log_.error("batch dead-lettered after too many attempts", {{"batch", *reply.dead}});
  }
  if (reply.lease && reply.lease->attempt > 1) {
    log_.info("taking over a batch", {{"batch", reply.lease->batch}, {"attempt", reply.lease->attempt}});
  }
}

void SessionKeeper::wait(TimePoint until) {
  const auto health = last_round_trip_ + options_.healthcheck_interval;
  if (environment_.now() >= health) {
    session().check_health();
    last_round_trip_ = environment_.now();
    return;
  }
  observer_.waits(std::min(until, health));
  environment_.wait(session().socket(), std::min(until, health));
}

}  // namespace mailroom::consumer
