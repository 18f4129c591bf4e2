// The sink of mailroom collect with --to or --exec, which decides what is tried again and when.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "consumer/consumer_observer.hpp"
#include "consumer/sink.hpp"
#include "delivery/breaker.hpp"
#include "delivery/carried_line.hpp"
#include "delivery/claim_pace.hpp"
#include "delivery/pace.hpp"
#include "delivery/shared_breakers.hpp"

namespace mailroom {

/// Hands the lines of a batch over by a carrier, several at the same time, and records what became of each
/// token. A line that may have been taken without an answer is sent again within the batch, with the same
/// message id. Two batches may be open, so that lines are in flight while the consumer claims; or one, as
/// ClaimPace says. A thread keeps them in flight while the consumer is elsewhere.
class CarrierSink final : public Sink {
 public:
  struct Options {
    int in_flight = 64;
    int lines = 64;                ///< how many may be in its open batches
    int line_limit = 10;           ///< tokens in a line, until a batch begins with another limit
    Milliseconds timeout{30'000};  ///< of an answer
    DeliveryPolicy policy{};
    Milliseconds resend_for{60'000};  ///< from the first time that a line was sent
    Milliseconds grace{5000};         ///< for what is in flight when a stop is requested
    std::uint64_t seed = 0;
  };

  /// `stop_fd` becomes readable when a stop is requested. The references must outlive this.
  CarrierSink(std::unique_ptr<Carrier> carrier, Options options, int stop_fd, Log& log,
              ConsumerObserver& observer);
  ~CarrierSink() override;
  CarrierSink(const CarrierSink&) = delete;
  CarrierSink& operator=(const CarrierSink&) = delete;

  std::size_t most_open() const override;
  int room() const override;
  void begin(const Lease& lease, int line_limit) override;
  void add(const TokenRow& row, const TokenText& token) override;
  void skip(const TokenRow& row, const char* defect) override;
  BatchOutcome finish(const std::function<void()>& when_slow) override;
  bool is_ready() const override;
  void consult(SinkBoard& board, bool heard) override;
  TimePoint claims_from() const override;
  std::string unavailability() const override;

 private:
  struct OpenBatch {
    Lease lease;
    std::int64_t first_line = 0;  ///< its id at the carrier; the others follow
    int lines = 0;
    int concluded = 0;  ///< lines whose tokens have their outcome
    int tokens = 0;     ///< also those that are not handed over
    int handed = 0;
    std::vector<TokenOutcome> outcomes{};
    TimePoint began{};
    TimePoint ended{};  ///< its last answer
  };

  /// The functions below need the mutex.
  std::size_t batches_open() const { return options_.lines > 1 && pace_.overlaps() ? 2 : 1; }
  OpenBatch& batch_of(std::int64_t line);
  void close_line();
  void take_answers();
  /// Submits what may be in flight now.
  void pump();
  bool submit_next();
  void submit(std::int64_t id);
  void submit_probe();
  void wait_for_answers(const std::function<void()>& when_slow);
  void stop();
  Milliseconds time_to_wait() const;
  void record(const Answer& answer);
  bool is_sent_again(CarriedLine& line, const Answer& answer);
  void note_rate(CarriedLine& line, const Answer& answer);
  bool waits_for_turn(const CarriedLine& line, const Answer& answer) const;
  void give_up_old_resends();
  void note_state(const Answer& answer);
  void conclude(std::int64_t id, const Answer& answer);
  void give_back(std::int64_t id, const std::string& why);
  void report_answers();
  void observe(const Delivery& delivery, const OpenBatch& batch, const CarriedToken& token);
  void log_outcome(const TokenOutcome& outcome);
  std::optional<std::chrono::seconds> time_to_admission() const;
  double chance();
  /// The thread: takes answers and submits lines, whenever the consumer does not.
  void keep_in_flight();

  std::unique_ptr<Carrier> carrier_;
  std::string name_;
  Options options_;
  int stop_fd_;
  Log& log_;
  ConsumerObserver& observer_;
  mutable std::mutex mutex_;  ///< guards all below and the carrier
  std::mt19937_64 random_;
  LineWriter writer_;                               ///< of the newest batch
  std::deque<OpenBatch> batches_;                   ///< the oldest first
  std::int64_t next_id_ = 0;                        ///< of a line, at the carrier
  std::map<std::int64_t, CarriedLine> lines_;       ///< by id: those that are not concluded
  std::deque<std::int64_t> waiting_;                ///< lines that were not submitted yet
  std::multimap<TimePoint, std::int64_t> resends_;  ///< lines to be submitted again, and when
  ClaimPace pace_;
  TimePoint last_ended_{};   ///< the last answer of the batch before
  WallTime submitted_at_{};  ///< the last line
  bool is_probing_ = false;  ///< a line is in flight that shows whether the other side is available
  bool is_stopped_ = false;
  bool is_unavailable_ = false;
  bool was_limited_ = false;
  Breaker breaker_;
  SharedBreakers shared_;
  Pace rate_;                     ///< in lines
  std::vector<SinkAnswer> seen_;  ///< what the observer has not been told
  bool has_ended_ = false;
  int news_;  ///< an eventfd for the thread: the first line is there, or the end
  std::thread keeper_;
};

}  // namespace mailroom
