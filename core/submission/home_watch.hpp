// Whether mails that are stored here are sent: the guard of copies and standbys, looked at again and again.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/log.hpp"
#include "db/connection.hpp"
#include "submission/reply.hpp"

namespace mailroom::submission {

class HomeWatch {
 public:
  static constexpr Milliseconds interval{5000};

  /// Looks once with `connection`, which it keeps, and throws what that throws; from then on in a thread of
  /// its own. While the database does not answer, what it said last holds.
  HomeWatch(std::unique_ptr<db::Connection> connection, db::DatabaseTarget target, Log& log);
  ~HomeWatch();
  HomeWatch(const HomeWatch&) = delete;
  HomeWatch& operator=(const HomeWatch&) = delete;

  /// Why no mail may be taken, if so.
  std::optional<Reply> refusal() const;

 private:
  void look();
  void watch();

  db::DatabaseTarget target_;
  Log& log_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<Reply> refusal_;
  bool has_ended_ = false;
  std::unique_ptr<db::Connection> connection_;  ///< of the thread
  std::thread thread_;
};

}  // namespace mailroom::submission
