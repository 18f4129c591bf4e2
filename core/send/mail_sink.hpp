#pragma once

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "consumer/consumer_observer.hpp"
#include "consumer/sink.hpp"
#include "send/delivery_policy.hpp"
#include "send/mail_writer.hpp"
#include "send/throttle.hpp"
#include "smtp/courier.hpp"

namespace mailroom {

/// Mails each token of a batch. A token counts as emitted when a relay has accepted its mail.
class MailSink final : public Sink {
 public:
  /// How long mails in progress may take after a stop request.
  static constexpr Milliseconds grace{5000};

  /// `stop_fd` becomes readable when a stop is requested.
  MailSink(std::shared_ptr<const MailWriter> writer, const CourierOptions& courier, DeliveryPolicy policy,
           int stop_fd, Log& log, ConsumerObserver& observer);

  void begin(const Lease& lease, int line_limit) override;
  void add(const TokenRow& row, const TokenText& token) override;
  void skip(const TokenRow& row, const char* defect) override;
  BatchOutcome finish(const std::function<void()>& when_slow) override;
  bool is_ready() const override { return !courier_.time_to_admission(); }
  void consult(SinkBoard& board, bool heard) override;
  TimePoint claims_from() const override;

 private:
  struct Pending {
    MailHistory history;
    WrittenMail mail;
    std::string token;  ///< which no answer may repeat
    std::int64_t created_at = 0;
  };

  void submit(MailHistory history, const TokenRow& row, const TokenText& token);
  void wait_for_relays(const std::function<void()>& when_slow);
  void record(const DeliveredMail& delivered);
  void observe(const Delivery& delivery, const Pending& pending);
  void log_outcome(const TokenOutcome& outcome);

  std::shared_ptr<const MailWriter> writer_;
  std::vector<std::string> relays_;  ///< their names, in order
  Milliseconds probe_time_;
  std::vector<Breaker> shared_;    ///< as all senders know them
  std::vector<bool> holds_probe_;  ///< the next probe of this relay is this sink's
  Courier courier_;
  DeliveryPolicy policy_;
  int stop_fd_;
  Log& log_;
  ConsumerObserver& observer_;
  std::mt19937_64 random_;
  Lease lease_;
  std::deque<Pending> pending_;  ///< the mails of the batch; a mail's place is its id at the courier
  std::vector<TokenOutcome> outcomes_;
  std::map<std::int64_t, int> mails_by_account_;  ///< of the batch
  TimePoint began_{};
  bool was_throttled_ = false;  ///< in this batch
  bool is_unavailable_ = false;
  Throttle throttle_;
};

}  // namespace mailroom
