// Reads the same seconds again at each poll and omits what was shown, since commits come out of order. Spares
// a slow server, and survives a lost session.

#include "feed/event_feed.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "db/pooler.hpp"
#include "db/values.hpp"
#include "process/retry.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom::feed {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds recent{5};  ///< what each poll reads
constexpr std::chrono::seconds window_interval{2};
constexpr int window_share = 10;  ///< reading the window takes at most a tenth of the time
constexpr std::size_t events_per_lookup = 8000;

constexpr Milliseconds poll_interval{200};
constexpr Milliseconds shortest_pause{20};
constexpr Milliseconds longest_pause{1000};

// The times of tokens are rounded to seconds.
constexpr std::chrono::seconds rounding{2};

}  // namespace

std::unique_ptr<db::Connection> connect_reader(const db::DatabaseTarget& target,
                                               const std::function<void(db::Connection&)>& check_schema,
                                               const std::string& channel, const process::StopSignal* stop) {
  const std::string program = "mailroom tail";
  auto session = stop == nullptr ? std::make_unique<db::Connection>(target, program)
                                 : process::connect_until_stopped(*stop, target, program);
  db::require_own_session(*session, target, program);
  check_schema(*session);
  // The feed reads few rows of large tables: hash joins and merge joins would read too much.
  session->run(R"(
SET default_transaction_isolation = 'repeatable read';
SET default_transaction_read_only = on;
SET row_security = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET cursor_tuple_fraction = 1)");
  if (!channel.empty() && !session->run("SELECT pg_is_in_recovery()").value<bool>()) session->listen(channel);
  return session;
}

EventFeed::EventFeed(std::unique_ptr<db::Connection> session, Connect connect, HistoryRequest history,
                     EventFilter filter, std::chrono::seconds window, Log& log)
    : session_(std::move(session)),
      connect_(std::move(connect)),
      history_(history),
      filter_(std::move(filter)),
      window_(window),
      log_(log) {}

EventFeed::ServerState EventFeed::read_state() {
  const auto row = session_->run(
      "SELECT pg_current_snapshot()::text AS snapshot, floor(extract(epoch FROM clock_timestamp()))::bigint AS now")
                       [0];
  return {.snapshot = row.text("snapshot"), .now = row.moment<std::chrono::seconds>("now")};
}

std::string EventFeed::identity() {
  return session_
      ->run(R"(
SELECT system_identifier || ' ' || oid FROM pg_control_system(), mailroom_this_database())")
      .text();
}

void EventFeed::start(bool follow) {
  if (follow) {
    identity_ = identity();
    last_ = read_state();
    since_ = last_.now - window_;
  }
  session_->transact([&](pqxx::work& transaction) {
    const auto past = read_history(transaction, history_, filter_);
    pending_.assign(past.begin(), past.end());
    if (follow) shown_ = read_from(transaction, since_);
  });
  next_window_ = Steady::now() + window_interval;
}

void EventFeed::reconnect() {
  session_.reset();
  session_ = connect_();
  if (identity() == identity_) return;
  log_.warn("connected to a different database, following it from now on");
  history_ = {.last = 0};
  start(true);
}

std::vector<EventKey> EventFeed::read_from(pqxx::work& transaction, Moment since) const {
  // The state of a token may change after it was shown, so look_up() filters by state.
  auto filter = filter_;
  filter.states.clear();
  return read_history(transaction, {.since = since}, filter);
}

void EventFeed::poll() {
  auto state = read_state();
  const bool due = window_ <= recent || Steady::now() >= next_window_;
  if (state.snapshot == last_.snapshot && (read_window_ || !due)) return;
  since_ = std::max(since_, state.now - window_);
  const auto from = due ? since_ : std::max(since_, std::min(last_.now, state.now) - recent);

  const auto started = Steady::now();
  const auto found =
      session_->transact([&](pqxx::work& transaction) { return read_from(transaction, from); });
  const auto ended = Steady::now();
  if (due)
    next_window_ = ended + std::max<Steady::duration>(window_interval, (ended - started) * window_share);
  show_new(found);
  last_ = std::move(state);
  read_window_ = due;
}

void EventFeed::show_new(const std::vector<EventKey>& found) {
  std::vector<EventKey> fresh;
  std::set_difference(found.begin(), found.end(), shown_.begin(), shown_.end(), std::back_inserter(fresh));
  std::copy_if(fresh.begin(), fresh.end(), std::back_inserter(pending_),
               [&](const auto& event) { return filter_.may_want(event.kind); });
  const auto middle = static_cast<std::ptrdiff_t>(shown_.size());
  shown_.insert(shown_.end(), fresh.begin(), fresh.end());
  std::inplace_merge(shown_.begin(), shown_.begin() + middle, shown_.end());
  const auto past = std::find_if(shown_.begin(), shown_.end(),
                                 [&](const auto& event) { return event.order >= since_ - rounding; });
  shown_.erase(shown_.begin(), past);
}

void EventFeed::take_notifications() {
  try {
    session_->take_notifications();
  } catch (const db::ConnectionLost& error) {
    // The next statement fails too, and run() then replaces the session.
    log_.debug("the session has ended", {{"reason", error.what()}});
  }
}

std::vector<Event> EventFeed::next() {
  const auto end =
      pending_.begin() + static_cast<std::ptrdiff_t>(std::min(pending_.size(), events_per_lookup));
  auto events = look_up(*session_, {pending_.begin(), end}, filter_);
  pending_.erase(pending_.begin(), end);
  return events;
}

void EventFeed::run(bool follow, process::Environment& environment, const Show& show) {
  process::Backoff backoff(environment.random_seed());
  process::RetryLog retries(log_);
  Pace pace;
  bool hung_up = false;
  const auto finished = [&] {
    // A terminal that closes sends SIGHUP.
    hung_up = hung_up || environment.take_reload();
    return hung_up || environment.stop_requested();
  };
  start(follow);
  for (bool is_lost = false; !finished();) {
    try {
      if (is_lost) {
        environment.sleep_for(backoff.next());
        if (finished()) return;
        reconnect();
        is_lost = false;
        if (retries.is_news()) log_.info("connected again");
      }
      while (has_more() && !finished()) {
        if (!show(next())) return;
      }
      if (!follow) return;
      wait(environment, pace);
      if (finished()) return;
      pace = poll_in(environment);
      backoff.reset();
      retries.worked();
    } catch (const db::ConnectionLost& error) {
      if (!follow) throw;
      if (is_lost && finished()) return;
      if (!is_lost) retries.worked();
      retries.failed("connection lost", error.what(), environment.now());
      is_lost = true;
    } catch (const db::DatabaseError& error) {
      if (!follow || !db::is_transient(error)) throw;
      log_.warn("statement failed, trying again", {{"reason", error.what()}});
      environment.sleep_for(backoff.next());
    }
  }
}

EventFeed::Pace EventFeed::poll_in(process::Environment& environment) {
  const auto started = environment.now();
  poll();
  // Pause four times as long as the poll took, to spare a slow server.
  const auto ended = environment.now();
  const auto pause = std::clamp<TimePoint::duration>((ended - started) * 4, shortest_pause, longest_pause);
  return {.next = std::max(started + poll_interval, ended + pause), .earliest = ended + pause};
}

void EventFeed::wait(process::Environment& environment, const Pace& pace) {
  if (!session_->take_notifications()) {
    environment.wait(session_->socket(), pace.next);
    session_->take_notifications();
  }
  const auto left = std::chrono::ceil<Milliseconds>(pace.earliest - environment.now());
  if (left.count() > 0) environment.sleep_for(left);
}

}  // namespace mailroom::feed
