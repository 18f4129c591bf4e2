// What a consumer reports of its work, for metrics and the service manager.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "claim/queue_session.hpp"
#include "trace/traceparent.hpp"

namespace mailroom::consumer {

/// Why a consumer took a batch when it did.
enum class BatchTrigger {
  full,     ///< it was full
  timeout,  ///< its first token had waited for the batch timeout
  drain,    ///< everything was emitted at once: at the start, after a reconnect, with --once
  replay,   ///< the queue had passed its tokens before: see FinishedBatch::trigger
};

/// `full`.
inline const char* batch_trigger_name(BatchTrigger trigger) {
  constexpr std::array names{"full", "timeout", "drain", "replay"};
  return names.at(static_cast<std::size_t>(trigger));
}

/// How long each step of a batch took.
struct BatchTimes {
  std::chrono::nanoseconds claim{};  ///< the statement that claimed it, which also fetches a small batch
  std::chrono::nanoseconds fetch{};  ///< then until its first token was there
  std::chrono::nanoseconds sign{};   ///< then until its last token was signed. A large batch arrives
                                     ///< meanwhile, and the next one may be claimed
  std::chrono::nanoseconds write{};  ///< then until the sink had finished it
};

/// How many tokens were created in a second.
struct CreatedTokens {
  std::int64_t second = 0;  ///< since 1970, by the server's clock
  int count = 0;
};

/// What became of the tokens of an action in a batch.
struct ActionCounts {
  std::string action;
  claim::BatchCounts counts{};  ///< without ids; `emitted` are those that the sink was given
};

/// A batch that the sink has finished. The next claim acknowledges it.
struct FinishedBatch {
  const claim::Receipt& receipt;
  int size = 0;  ///< tokens claimed
  /// A batch is a replay if it was taken over, or if this process has seen the cursor pass all of its tokens:
  /// they are emitted again, tried again, or were committed late.
  BatchTrigger trigger = BatchTrigger::full;
  BatchTimes times{};
  /// Of the tokens that the sink was given, if the session knows: TokenDetail::with_creation.
  std::span<const CreatedTokens> created{};
  std::span<const ActionCounts> actions{};
};

/// A claim that has succeeded, also one that found nothing.
struct ObservedClaim {
  const std::string& queue;
  const claim::ClaimReply& reply;
  bool only_acknowledged = false;  ///< it was not to take a batch
  std::chrono::nanoseconds took{};
};

/// What the receiver of a sink, such as a relay, answered to one token.
struct SinkAnswer {
  std::string queue;
  std::string sink;          ///< host and port; empty if nothing was tried
  const char* outcome = "";  ///< `accepted`, `deferred`, `rejected`, `unknown` or `unavailable`
  int code = 0;              ///< 0 for none
  std::chrono::nanoseconds took{};
  /// From the creation of the token to the answer; only if it was accepted.
  std::optional<std::chrono::duration<double>> delay{};
  std::optional<trace::TraceId> trace{};  ///< that has a span of it
};

/// Learns what a consumer does, and changes nothing about it. All calls come from the thread of the
/// consumer's loop, which they must not hold up: no call waits, or throws.
class ConsumerObserver {
 public:
  virtual ~ConsumerObserver() = default;

  /// The loop has come around. Statements and other work follow, until the next of these three calls.
  virtual void turned(TimePoint /*now*/) {}
  /// The loop has nothing to do before `until`, unless a notification or a signal comes.
  virtual void waits(TimePoint /*until*/) {}
  /// The sink delivers a batch, which takes as long as its reader or its relay does. turned() follows.
  virtual void delivers() {}

  /// A session has begun: the schema fits, and notifications are heard.
  virtual void connected() {}
  /// The names of the actions. Follows connected(), and each change of them.
  virtual void learned(const std::vector<std::string>& /*actions*/) {}
  /// The session has ended, or is given up.
  virtual void disconnected() {}
  virtual void claimed(const ObservedClaim& /*claim*/) {}
  virtual void finished(const FinishedBatch& /*batch*/) {}
  /// Follows for each token that the receiver has answered, before finished().
  virtual void answered(const SinkAnswer& /*answer*/) {}

  virtual void reloading() {}
  /// False: the previous configuration stays.
  virtual void reloaded(bool /*succeeded*/) {}
  /// The loop has ended. Only the last batch is still to be acknowledged.
  virtual void stopping() {}
};

/// Observes nothing.
inline ConsumerObserver& nobody() {
  static ConsumerObserver observer;
  return observer;
}

/// Tells several observers, in the order in which they were added.
class ConsumerObservers final : public ConsumerObserver {
 public:
  /// `observer` must outlive this.
  void add(ConsumerObserver& observer) { observers_.push_back(&observer); }

  void turned(TimePoint now) override { tell(&ConsumerObserver::turned, now); }
  void waits(TimePoint until) override { tell(&ConsumerObserver::waits, until); }
  void delivers() override { tell(&ConsumerObserver::delivers); }
  void connected() override { tell(&ConsumerObserver::connected); }
  void learned(const std::vector<std::string>& actions) override {
    tell(&ConsumerObserver::learned, actions);
  }
  void disconnected() override { tell(&ConsumerObserver::disconnected); }
  void claimed(const ObservedClaim& claim) override { tell(&ConsumerObserver::claimed, claim); }
  void finished(const FinishedBatch& batch) override { tell(&ConsumerObserver::finished, batch); }
  void answered(const SinkAnswer& answer) override { tell(&ConsumerObserver::answered, answer); }
  void reloading() override { tell(&ConsumerObserver::reloading); }
  void reloaded(bool succeeded) override { tell(&ConsumerObserver::reloaded, succeeded); }
  void stopping() override { tell(&ConsumerObserver::stopping); }

 private:
  template <typename... Parameters, typename... Told>
  void tell(void (ConsumerObserver::*what)(Parameters...), const Told&... told) {
    for (auto* observer : observers_)
      (observer->*what)(told...);
  }

  std::vector<ConsumerObserver*> observers_;
};

/// Whether the loop of a consumer turns, for any thread to ask.
class LoopState final : public ConsumerObserver {
 public:
  /// The loop counts as having turned `now`.
  explicit LoopState(TimePoint now) : busy_from_(now) {}

  void turned(TimePoint now) override { busy_from_ = now; }
  void waits(TimePoint until) override { busy_from_ = until; }
  void delivers() override { busy_from_ = TimePoint::max(); }

  /// How long the loop has been overdue: 0 while it waits as it said, and while its sink delivers. Statements
  /// usually take milliseconds; one that waits for a lock may take long, and the loop does not turn
  /// meanwhile.
  std::chrono::nanoseconds overdue(TimePoint now) const {
    const auto from = busy_from_.load();
    return from < now ? now - from : std::chrono::nanoseconds(0);
  }

 private:
  static_assert(std::atomic<TimePoint>::is_always_lock_free);
  std::atomic<TimePoint> busy_from_;
};

}  // namespace mailroom::consumer
