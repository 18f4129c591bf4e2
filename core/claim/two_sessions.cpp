// Threads end before run() does. What still runs when the other session has failed is cancelled or awaited.

#include "claim/two_sessions.hpp"

#include <future>

#include "base/blocked_signals.hpp"

namespace mailroom {
namespace {

/// How long to wait for a second session while a batch is leased: a pooler may have no more to give.
constexpr Milliseconds open_patience{2000};

template <typename Work>
std::future<void> in_thread(Work work) {
  const BlockedSignals blocked;
  return std::async(std::launch::async, std::move(work));
}

/// What runs ends by itself, or with the connection, if it cannot be cancelled.
void cancel_quietly(Connection& connection) {
  try {
    connection.cancel();
  } catch (const Error&) {
    return;
  }
}

/// Cancels what runs on the connection until `work`, which uses it, has ended.
void cancel(const std::future<void>& work, Connection& connection) {
  while (work.wait_for(Milliseconds(0)) == std::future_status::timeout) {
    cancel_quietly(connection);
    work.wait_for(StopWatcher::moment);
  }
}

}  // namespace

bool TwoSessions::open() {
  if (second_ || !may_open_) return may_open_;
  const StopWatcher::Wait waiting(watcher_, Awaited::database, &first_);
  try {
    second_ = std::make_unique<Connection>(target_, "mailroom read", SessionLimits{.answer = open_patience});
    // The first session is known to have a server process of its own; so has the other one.
    second_->own_session();
    second_->run(settings_);
  } catch (const Error& error) {
    second_.reset();
    may_open_ = false;
    if (log_ != nullptr) log_->info("no second session for large batches", {{"reason", error.what()}});
  }
  return may_open_;
}

bool TwoSessions::run(const Work& on_first,
                      const std::function<void(Connection& second, const InBoth&)>& on_second) {
  if (!open()) return false;
  auto first = in_thread([&] { on_first(first_); });
  const auto in_both = [&](const Work& work) {
    auto share = in_thread([&] {
      first.wait();
      work(first_);
    });
    try {
      work(*second_);
    } catch (...) {
      // The first session, with its own work or its share, may wait for the same as the second did.
      cancel(share, first_);
      throw;
    }
    const StopWatcher::Wait waiting(watcher_, Awaited::database, &first_);
    share.get();
  };
  try {
    const StopWatcher::Wait waiting(watcher_, Awaited::database, second_.get());
    on_second(*second_, in_both);
  } catch (...) {
    const StopWatcher::Wait waiting(watcher_, Awaited::database, &first_);
    first.wait();
    throw;
  }
  const StopWatcher::Wait waiting(watcher_, Awaited::database, &first_);
  first.get();
  return true;
}

}  // namespace mailroom
