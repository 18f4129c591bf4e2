// Threads that ask the database for requests which store nothing: each has a session of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "http_door/keyed_session.hpp"

namespace mailroom::http_door {

class Questions {
 public:
  using Question = std::function<void(KeyedSession&)>;

  Questions(const submission::DatabaseAccess& access, std::size_t threads);
  /// Asks none that waits.
  ~Questions();
  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;

  /// False if too many wait already.
  bool ask(Question question);

 private:
  static constexpr std::size_t most_waiting = 256;

  void work();

  const submission::DatabaseAccess access_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Question> waiting_;
  bool has_ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mailroom::http_door
