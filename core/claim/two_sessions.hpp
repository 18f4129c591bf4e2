// A second session beside that of a consumer, for large batches: one claims while the other reads.
#pragma once

#include <functional>
#include <memory>

#include "base/log.hpp"
#include "db/connection.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom {

/// Works in two sessions at the same time. While it does, the caller uses neither.
class TwoSessions {
 public:
  using Work = std::function<void(Connection&)>;
  /// Does the work in both sessions, and returns when both have ended. Throws what one of them has thrown.
  using InBoth = std::function<void(const Work&)>;

  /// `log` and `watcher` may be null. What is not must outlive this.
  TwoSessions(Connection& first, DatabaseTarget target, const char* settings, Log* log, StopWatcher* watcher)
      : first_(first), target_(std::move(target)), settings_(settings), log_(log), watcher_(watcher) {}

  /// False if opening the second session has failed before.
  bool may_run() const { return may_open_; }
  /// Does `on_first` in the first session in a thread of its own, and meanwhile `on_second` in the second
  /// one, which may let both sessions work as soon as `on_first` has ended. Returns when all has ended.
  /// Throws what `on_second` has thrown, or else what `on_first` has. Opens the second session when it is
  /// first needed; false, with nothing done, where that fails, such as behind a pooler that has no more.
  bool run(const Work& on_first, const std::function<void(Connection& second, const InBoth&)>& on_second);

 private:
  bool open();

  Connection& first_;
  DatabaseTarget target_;
  const char* settings_;
  Log* log_;
  StopWatcher* watcher_;
  bool may_open_ = true;
  std::unique_ptr<Connection> second_;
};

}  // namespace mailroom
