// The sink of mailroom send, and of mailroom collect with --to or --exec: composes, dispatches and records.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/spool.hpp"
#include "consumer/consumer_observer.hpp"
#include "consumer/sink.hpp"
#include "delivery/breaker.hpp"
#include "delivery/composer.hpp"
#include "delivery/delivery_log.hpp"
#include "delivery/dispatcher.hpp"

namespace mailroom {

/// Decides whether a sink keeps two batches open, of half a claim each, or one. With two the other side works
/// while the consumer acknowledges and claims; but what a claim costs beside its tokens is then paid twice,
/// which a fast other side does not make up for. Pure: takes times.
class ClaimPace {
 public:
  /// About what the server spends on a token, for its claim, its fetch and its record.
  static constexpr std::chrono::microseconds token_cost{10};

  /// A batch has been claimed, and begins.
  void began(TimePoint now);
  /// A batch of `tokens` is done at `now`, for which the other side took `busy`. A whole claim has
  /// `whole` tokens.
  void finished(TimePoint now, std::chrono::nanoseconds busy, int tokens, int whole);

  /// True for two.
  bool overlaps() const { return overlaps_; }

 private:
  std::optional<TimePoint> finished_at_{};
  std::chrono::nanoseconds claim_took_{};  ///< from the end of a batch to the beginning of the next
  bool overlaps_ = true;
};

/// Makes messages of the tokens of a batch, delivers them, and records what became of each token. A token
/// counts as emitted when the other side has accepted its message. Two batches may be open, so that messages
/// are in flight while the consumer claims; or one, as ClaimPace says.
class DeliverySink final : public Sink {
 public:
  struct Options {
    Dispatcher::Options dispatch{};
    int messages = 64;      ///< how many may be in its open batches
    int message_limit = 1;  ///< tokens in a message, until a batch says otherwise
    DeliveryPolicy policy{};
    Milliseconds grace{5000};  ///< for what is in flight when a stop is requested
    DeliveryWords words{};
  };

  /// `stop_fd` becomes readable when a stop is requested. The references must outlive this.
  DeliverySink(std::unique_ptr<Composer> composer, std::unique_ptr<Carrier> carrier, Options options,
               int stop_fd, Log& log, DeliveryLog& delivery_log, ConsumerObserver& observer);

  std::size_t most_open() const override { return options_.messages > 1 && pace_.overlaps() ? 2 : 1; }
  int room() const override;
  void begin(const Lease& lease, int line_limit) override;
  void add(const TokenRow& row, std::string_view token) override;
  void skip(const TokenRow& row, const char* defect) override;
  BatchOutcome finish(const std::function<void()>& when_slow) override;
  bool is_ready() const override { return !dispatcher_.time_to_admission(); }
  void consult(SinkBoard& board, bool heard) override;
  TimePoint claims_from() const override;
  std::string unavailability() const override { return shared_.unavailability(dispatcher_.breakers()); }

 private:
  struct OpenBatch {
    Lease lease;
    std::int64_t first_message = 0;  ///< its id; the others follow
    std::deque<Composed> messages{};
    std::size_t concluded = 0;  ///< how many of them have their final answer
    int tokens = 0;             ///< also those without a message
    int carried = 0;            ///< tokens of messages
    std::vector<TokenOutcome> outcomes{};
    std::map<std::string, int, std::less<>> mails_by_recipient{};
    TimePoint began{};
    TimePoint ended{};  ///< its last answer
  };

  void submit(OpenBatch& batch, Composed composed);
  void close_message();
  void wait_for_answers(const std::function<void()>& when_slow);
  void record(Dispatched dispatched);
  void conclude(OpenBatch& batch, const Composed& message, const Dispatched& dispatched);
  /// Tells the log which endpoints are unavailable, and which are no longer.
  void note_states(const std::vector<Breaker>& breakers);
  /// Says, once for many, that the other side limits messages or connections.
  void note_limit(const Dispatched& dispatched);
  void observe(const Answer& answer, const OpenBatch& batch, const ComposedToken& token);
  /// Mails to the recipient (TokenRow::counted_as) that are not recorded in the database.
  int open_mails_to(std::string_view recipient) const;

  std::unique_ptr<Composer> composer_;
  Options options_;
  Spool spool_;
  SharedBreakers shared_;
  Dispatcher dispatcher_;
  int stop_fd_;
  Log& log_;
  DeliveryLog& delivery_log_;
  ConsumerObserver& observer_;
  std::mt19937_64 random_;
  std::deque<OpenBatch> batches_;  ///< the oldest first
  std::int64_t next_id_ = 0;       ///< of a message
  TimePoint last_ended_{};         ///< the last answer of the batch before
  ClaimPace pace_;
  std::vector<bool> was_open_;  ///< the breakers, when they were last told to the log
  std::optional<TimePoint> warned_of_limit_{};
};

}  // namespace mailroom
