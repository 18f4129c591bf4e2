// The sink of mailroom send, between the batches of the consumer and the courier.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "carriers/smtp/courier.hpp"
#include "consumer/consumer_observer.hpp"
#include "consumer/sink.hpp"
#include "delivery/claim_pace.hpp"
#include "delivery/delivery_policy.hpp"
#include "delivery/shared_breakers.hpp"
#include "send/mail_writer.hpp"

namespace mailroom {

/// Mails each token of a batch. A token counts as emitted when a relay has accepted its mail. Two batches may
/// be open, so that the relays do not wait for the database between them; or one, as ClaimPace says.
class MailSink final : public Sink {
 public:
  /// How long mails in progress may take after a stop request.
  static constexpr Milliseconds grace{5000};

  /// `batch_limit`: how many tokens may be in its open batches. `stop_fd` becomes readable when a stop is
  /// requested.
  MailSink(std::shared_ptr<const MailWriter> writer, const CourierOptions& courier, DeliveryPolicy policy,
           int batch_limit, int stop_fd, Log& log, ConsumerObserver& observer);

  std::size_t most_open() const override { return batch_limit_ > 1 && pace_.overlaps() ? 2 : 1; }
  int room() const override;
  void begin(const Lease& lease, int line_limit) override;
  void add(const TokenRow& row, const TokenText& token) override;
  void skip(const TokenRow& row, const char* defect) override;
  BatchOutcome finish(const std::function<void()>& when_slow) override;
  bool is_ready() const override { return !courier_.time_to_admission(); }
  void consult(SinkBoard& board, bool heard) override;
  TimePoint claims_from() const override;
  std::string unavailability() const override { return shared_.unavailability(courier_.breakers()); }

 private:
  struct Pending {
    MailHistory history;
    WrittenMail mail;
    std::string token;       ///< which no answer may repeat
    std::int64_t dated = 0;  ///< see TokenRow
  };
  struct OpenBatch {
    Lease lease;
    std::int64_t first_mail = 0;  ///< its id at the courier; the others follow
    std::deque<Pending> pending{};
    std::size_t answered = 0;  ///< how many of them have their outcome
    int tokens = 0;            ///< also those without a mail
    std::vector<TokenOutcome> outcomes{};
    std::map<std::int64_t, int> mails_by_account{};
    TimePoint began{};
    TimePoint ended{};  ///< its last outcome
  };

  void submit(MailHistory history, const TokenRow& row, const TokenText& token);
  void wait_for_relays(const std::function<void()>& when_slow);
  void record(const DeliveredMail& delivered);
  /// Says, once for many, that the relay limits mails or connections.
  void note_limit(const Delivery& delivery, TimePoint now);
  void observe(const Delivery& delivery, const OpenBatch& batch, const Pending& pending);
  /// Mails to the account that are not recorded in the database.
  int open_mails_to(std::int64_t account) const;
  void log_outcome(const TokenOutcome& outcome);

  std::shared_ptr<const MailWriter> writer_;
  SharedBreakers shared_;
  Courier courier_;
  DeliveryPolicy policy_;
  int stop_fd_;
  Log& log_;
  ConsumerObserver& observer_;
  std::mt19937_64 random_;
  int batch_limit_;
  std::deque<OpenBatch> batches_;  ///< the oldest first
  std::int64_t next_mail_ = 0;     ///< its id at the courier
  TimePoint last_ended_{};         ///< when the relays had finished the batch before
  ClaimPace pace_;
  std::optional<TimePoint> stopped_{};  ///< when a stop request was seen
  bool is_unavailable_ = false;
  std::optional<TimePoint> warned_of_limit_{};
};

}  // namespace mailroom
