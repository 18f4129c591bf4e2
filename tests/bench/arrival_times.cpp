#include "bench/arrival_times.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace mailroom::bench {
namespace {

constexpr auto patience = std::chrono::seconds(10);

std::int64_t microseconds_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Returns 17 for `user17` and `user17@bench.example`.
std::size_t account_of(std::string_view login) {
  std::size_t id = 0;
  login.remove_prefix(std::min<std::size_t>(4, login.size()));
  std::from_chars(login.data(), login.data() + login.size(), id);
  return id;
}

}  // namespace

void ArrivalTimes::note(std::string_view login) {
  const auto now = microseconds_now();
  {
    const std::lock_guard lock(lock_);
    came_at_.at(account_of(login)) = now;
    ++count_;
  }
  changed_.notify_all();
}

bool ArrivalTimes::wait_for(std::int64_t account) {
  std::unique_lock lock(lock_);
  return changed_.wait_for(lock, patience, [&] { return came_at(account) != 0; });
}

bool ArrivalTimes::wait_for_count(std::int64_t count) {
  std::unique_lock lock(lock_);
  return changed_.wait_for(lock, patience, [&] { return count_ >= count; });
}

}  // namespace mailroom::bench
