#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

namespace mailroom::bench {

/// When the token of each account came out. For several threads.
class ArrivalTimes {
 public:
  /// For accounts 1 to `accounts`.
  explicit ArrivalTimes(std::int64_t accounts) : came_at_(static_cast<std::size_t>(accounts) + 1) {}

  /// The token of the account with this login or address, `user17…`, has come out now.
  void note(std::string_view login);
  /// Waits until a token of `account` has come out; false after 10 s.
  bool wait_for(std::int64_t account);
  /// Waits until `count` tokens have come out; false after 10 s.
  bool wait_for_count(std::int64_t count);
  /// When the account's token came out, in microseconds since 1970; 0 for none. Call only after the last
  /// wait.
  std::int64_t came_at(std::int64_t account) const { return came_at_.at(static_cast<std::size_t>(account)); }

 private:
  std::vector<std::int64_t> came_at_;
  std::int64_t count_ = 0;
  std::mutex lock_;
  std::condition_variable changed_;
};

}  // namespace mailroom::bench
