// Stores what waits in groups: what has come while one group was flushed becomes the next one, one
// transaction and one commit. What a group is made of, and how it is stored, the store knows.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/threads.hpp"

namespace mailroom::submission {

/// What waits to be stored.
struct GroupWork {
  std::string key{};  ///< no two of a group have the same
  std::size_t bytes = 0;
  TimePoint since{};
  TimePoint until{};       ///< it is given up then
  TimePoint not_before{};  ///< it is tried again then, and holds up no other
};

/// What stores a group. `Work` is a GroupWork. All is called by the thread of the writer.
template <typename Work>
class GroupStore {
 public:
  GroupStore() = default;
  virtual ~GroupStore() = default;
  GroupStore(const GroupStore&) = delete;
  GroupStore& operator=(const GroupStore&) = delete;

  /// Stores the group by one transaction, tells each its answer, and removes it. What it leaves has not been
  /// stored: all if nothing could be (false), those that are to be stored one by one, or one that is to be
  /// tried again at its `not_before`.
  virtual bool store(std::vector<Work>& group) = 0;
  /// Tells one that it has waited for too long.
  virtual void give_up(const Work& work) = 0;
};

template <typename Work>
class GroupWriter {
 public:
  /// Gives up what waits for longer than `patience`.
  GroupWriter(std::unique_ptr<GroupStore<Work>> store, Milliseconds patience)
      : patience_(patience), store_(std::move(store)), busy_at_(steady_now()) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { work(); });
  }
  /// Tries what waits once more, and ends.
  ~GroupWriter() {
    {
      const std::lock_guard lock(mutex_);
      has_ended_ = true;
    }
    arrived_.notify_all();
    thread_.join();
  }
  GroupWriter(const GroupWriter&) = delete;
  GroupWriter& operator=(const GroupWriter&) = delete;

  void add(Work work) {
    {
      const std::lock_guard lock(mutex_);
      work.since = busy_at_ = steady_now();
      work.until = work.since + patience_;
      waiting_.push_back(std::move(work));
    }
    arrived_.notify_one();
  }
  /// True if it has had nothing to do for so long: its session may go.
  bool is_idle_for(Milliseconds time) const {
    const std::lock_guard lock(mutex_);
    return waiting_.empty() && !is_storing_ && steady_now() - busy_at_ >= time;
  }

 private:
  using Group = std::vector<Work>;
  static constexpr std::size_t most_works = 256;
  static constexpr std::size_t most_bytes = std::size_t{8} * 1024 * 1024;
  static constexpr Milliseconds pause{200};  ///< before the next attempt

  void work() {
    for (;;) {
      auto group = next_group();
      if (group.empty()) return;
      store(group);
      const std::lock_guard lock(mutex_);
      busy_at_ = steady_now();
      is_storing_ = false;
    }
  }

  /// Nothing: it ends.
  Group next_group() {
    std::unique_lock lock(mutex_);
    for (;;) {
      auto group = take_group();
      is_storing_ = !group.empty();
      if (is_storing_ || (has_ended_ && waiting_.empty())) return group;
      if (waiting_.empty()) {
        arrived_.wait(lock);
      } else {
        arrived_.wait_until(lock, std::ranges::min(waiting_, {}, &Work::not_before).not_before);
      }
    }
  }

  /// What is due, up to the second of a key.
  Group take_group() {
    const auto now = steady_now();
    Group group;
    std::set<std::string> keys;
    std::size_t bytes = 0;
    for (auto each = waiting_.begin();
         each != waiting_.end() && group.size() < most_works && bytes < most_bytes;) {
      if (each->not_before > now && !has_ended_) {
        ++each;
        continue;
      }
      if (!keys.insert(each->key).second) break;
      bytes += each->bytes;
      group.push_back(std::move(*each));
      each = waiting_.erase(each);
    }
    return group;
  }

  void store(Group& group) {
    while (!group.empty() && !store_once(group)) {
      give_up_late(group);
      if (!group.empty() && !waits(pause)) {
        for (auto& each : group)
          each.until = {};
      }
    }
  }

  /// True if nothing is left of the group.
  bool store_once(Group& group) {
    const auto count = group.size();
    if (!store_->store(group)) return false;
    // One of them is refused: each by itself, so that only that one learns of it.
    while (count > 1 && !group.empty()) {
      Group one;
      one.push_back(std::move(group.back()));
      group.pop_back();
      const bool is_done = store_->store(one);
      if (is_done) {
        put_off(one);
        continue;
      }
      group.push_back(std::move(one.front()));
      return false;
    }
    put_off(group);
    return true;
  }

  void put_off(Group& group) {
    if (group.empty()) return;
    const std::lock_guard lock(mutex_);
    std::ranges::move(group, std::back_inserter(waiting_));
    group.clear();
  }

  /// Tells those that have waited for too long, of the group and behind it.
  void give_up_late(Group& group) {
    const auto now = steady_now();
    Group late;
    const auto take_late = [&](auto& all) {
      const auto first =
          std::stable_partition(all.begin(), all.end(), [&](const Work& each) { return each.until > now; });
      std::move(first, all.end(), std::back_inserter(late));
      all.erase(first, all.end());
    };
    take_late(group);
    {
      const std::lock_guard lock(mutex_);
      take_late(waiting_);
    }
    for (const auto& each : late)
      store_->give_up(each);
  }

  /// False if the service ends meanwhile.
  bool waits(Milliseconds time) {
    std::unique_lock lock(mutex_);
    return !arrived_.wait_for(lock, time, [this] { return has_ended_; });
  }

  const Milliseconds patience_;
  std::unique_ptr<GroupStore<Work>> store_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Work> waiting_;
  TimePoint busy_at_;
  bool is_storing_ = false;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace mailroom::submission
