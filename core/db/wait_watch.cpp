// Asks pg_blocking_pids() in a second session, and tells only what it has seen twice.

#include "db/wait_watch.hpp"

#include <algorithm>
#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "base/threads.hpp"

namespace mailroom::db {
namespace {

/// The sessions for which session $1 waits, the oldest transaction first. pid 0 is a prepared transaction;
/// null: a synchronous standby. CREATE INDEX CONCURRENTLY waits for transactions like for locks.
constexpr const char* blockers_sql = R"(
SELECT b.pid, coalesce(nullif(h.application_name, ''), 'without a name') AS name,
  coalesce(h.usename::text, 'unknown') AS "user",
  (extract(epoch FROM clock_timestamp() - h.xact_start) * 1000)::bigint AS open_ms,
  h.wait_event = 'SyncRep' IS TRUE AS waits_for_standby
FROM pg_stat_activity w
  CROSS JOIN LATERAL (
    SELECT DISTINCT p AS pid FROM unnest(pg_blocking_pids(w.pid)) p WHERE w.wait_event_type = 'Lock'
    UNION ALL
    SELECT NULL WHERE w.wait_event = 'SyncRep') b
  LEFT JOIN pg_stat_activity h ON h.pid = b.pid
WHERE w.pid = $1
ORDER BY h.xact_start NULLS LAST, b.pid)";

/// `pid 12 (report, user alice), whose transaction has been open for 15s`
std::string blocker_text(const Row& row) {
  if (row.is_null("pid"))
    return "a synchronous standby, which has not confirmed the commit: see synchronous_standby_names";
  if (row.number<int>("pid") == 0) return "a prepared transaction: see pg_prepared_xacts";
  const auto who = fmt::format("pid {} ({}, user {})", row.text("pid"), row.text("name"), row.text("user"));
  if (row.flag("waits_for_standby"))
    return who + ", which waits for a synchronous standby: see synchronous_standby_names";
  const auto open = row.optional<Milliseconds::rep>("open_ms");
  if (!open) return who;
  return fmt::format("{}, whose transaction has been open for {}", who,
                     format_duration(std::chrono::floor<std::chrono::seconds>(Milliseconds(*open))));
}

}  // namespace

/// What the thread and its owner share.
struct WaitWatch::State {
  const std::shared_ptr<const std::atomic<std::uint64_t>> activity;
  const int pid;
  const Options options;
  std::uint64_t statement = 0;  ///< the activity at the last glance
  TimePoint since{};            ///< the first glance at that statement
  std::unique_ptr<Connection> looking{};
  std::string seen{};  ///< the sessions at the last look
  std::string told{};
  std::mutex mutex{};
  std::condition_variable changed{};
  bool may_look = true;  ///< false: there is no second session for this role
  bool ended = false;
  bool done = false;

  void watch();
  Milliseconds pause() const;
  bool takes_long();
  void look();
  void tell(const std::string& text);
  void rest();
};

WaitWatch::WaitWatch(const Connection& connection, Options options)
    : state_(new State{.activity = connection.activity(),
                       .pid = connection.backend_pid(),
                       .options = std::move(options)}) {
  const BlockedSignals blocked;
  thread_ = std::thread([state = state_] { state->watch(); });
}

WaitWatch::~WaitWatch() {
  std::unique_lock lock(state_->mutex);
  state_->ended = true;
  state_->changed.notify_all();
  const bool is_done = state_->changed.wait_for(lock, 2 * interval, [this] { return state_->done; });
  lock.unlock();
  is_done ? thread_.join() : thread_.detach();
}

void WaitWatch::State::watch() {
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, pause(), [this] { return ended; })) {
    lock.unlock();
    takes_long() && may_look ? look() : rest();
    lock.lock();
  }
  done = true;
  changed.notify_all();
}

/// Each glance wakes an idle process.
Milliseconds WaitWatch::State::pause() const {
  return looking ? interval : std::max(interval, options.patience);
}

bool WaitWatch::State::takes_long() {
  const auto now = steady_now();
  if (const std::uint64_t current = *activity; current != statement) {
    rest();
    statement = current;
    since = now;
  }
  return statement % 2 == 1 && now - since >= options.patience;
}

void WaitWatch::State::rest() {
  looking.reset();
  seen.clear();
  if (std::exchange(told, {}).empty() || !options.over) return;
  const std::lock_guard lock(mutex);
  if (!ended) options.over();
}

void WaitWatch::State::look() {
  try {
    if (!looking)
      looking = std::make_unique<Connection>(options.target, options.purpose,
                                             SessionLimits{.answer = std::chrono::seconds(3)});
    std::string pids;
    std::string text;
    for (const auto& row : looking->run(blockers_sql, pid)) {
      pids += fmt::format("{} ", row.optional<std::string>("pid").value_or("standby"));
      text += (text.empty() ? "waiting for " : "; and for ") + blocker_text(row);
    }
    // Many waits are short: it must be the same at two looks.
    if (!pids.empty() && pids == seen && pids != told) {
      tell(text);
      told = pids;
    }
    seen = pids;
  } catch (const Error&) {
    // Without a second session the wait goes on untold; the command itself reports what fails.
    may_look = looking != nullptr;
    looking.reset();
  }
}

void WaitWatch::State::tell(const std::string& text) {
  const std::lock_guard lock(mutex);
  if (!ended) options.tell(text);
}

}  // namespace mailroom::db
