#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace mailroom::test {

/// What the producers of messages know. Each call is named by its subject; those that share a key without
/// "replace" share a subject too, and are to become one mail.
struct MessageNotes {
  std::map<std::string, std::set<std::string>> committed{};  ///< the addresses of each subject
  std::set<std::string> rolled_back{};                       ///< without those that share a subject
  std::set<std::string> cancelled{};  ///< committed, after mailroom_cancel() said `cancelled`
  std::set<std::string> undecided{};  ///< cancelled with another answer, or nobody knows whether committed
  std::map<std::string, std::set<std::int64_t>>
      ids{};  ///< that committed calls with a shared subject returned
};

/// Producers that ask for messages in every way that an application has: alone, in bulk, in transactions that
/// are held open, rolled back, or back to a savepoint; with keys that several of them use at once, and
/// replace; for the near future; and that cancel some of theirs. They start at once and run until stop().
class MessageLoad {
 public:
  MessageLoad(std::string conninfo, int producers, std::uint64_t seed);
  ~MessageLoad() { stop(); }
  MessageLoad(const MessageLoad&) = delete;
  MessageLoad& operator=(const MessageLoad&) = delete;
  void stop();

  /// After stop().
  const MessageNotes& notes() const { return notes_; }

 private:
  friend class MessageProducer;

  void produce(int number, std::uint64_t seed);

  std::string conninfo_;
  std::atomic<bool> enough_{false};
  std::atomic<int> shared_keys_{0};    ///< how often one was used
  std::atomic<int> replaced_keys_{0};  ///< the same of keys with "replace"
  std::mutex mutex_;
  MessageNotes notes_;  ///< under the mutex
  std::vector<std::thread> producers_;
};

}  // namespace mailroom::test
