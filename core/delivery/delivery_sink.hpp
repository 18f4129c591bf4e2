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
#include "delivery/clearance.hpp"
#include "delivery/composer.hpp"
#include "delivery/delivery_log.hpp"
#include "delivery/lane.hpp"

namespace mailroom::delivery {

/// Decides whether a sink keeps two batches open, of half a claim each, or one. With two the receiver works
/// while the consumer acknowledges and claims; but what a claim costs beside its tokens is then paid twice,
/// which a fast receiver does not make up for. Two batches delay each other, so only one that is open alone
/// shows what takes how long. It begins with two, so that the first batch delays nobody behind it, and has
/// one alone after a few; the surer it is of two, the longer it keeps them. Pure: takes times.
class ClaimPace {
 public:
  /// About what the server spends on a token, for its claim, its fetch and its record.
  static constexpr std::chrono::microseconds token_cost{10};
  static constexpr int most_votes = 3;
  /// So many batches overlap before one is open alone again, after so many votes for two.
  static constexpr int most_overlapping(int votes) { return 1 << (2 * votes); }

  /// A batch has been claimed, and begins. `is_alone`: no other is open.
  void began(TimePoint now, bool is_alone);
  /// A batch of `tokens`, for which the receiver took `busy`, is done at `now`. `was_alone`: no other one was
  /// open meanwhile. A whole claim has `whole` tokens.
  void finished(TimePoint now, std::chrono::nanoseconds busy, int tokens, int whole, bool was_alone);

  /// True for two.
  bool overlaps() const { return overlaps_; }

 private:
  std::optional<TimePoint> finished_at_{};
  bool was_alone_ = false;  ///< the batch before
  std::optional<std::chrono::nanoseconds>
      claim_took_{};     ///< from the end of a batch to the beginning of one that is alone
  int in_favour_ = 1;    ///< of two: the last batches that were alone, less those against
  int overlapping_ = 0;  ///< batches since one was alone
  bool overlaps_ = true;
};

/// Makes messages of the tokens of a batch, delivers them, and records what became of each token. A token
/// counts as emitted when the receiver has accepted its message. Two batches may be open, so that messages
/// are in flight while the consumer claims; or one, as ClaimPace says.
///
/// With several lanes, none delays the messages of another: what cannot leave soon goes back to the queue,
/// and what has left and is not answered while all others are done is recorded as deferred for as long as its
/// attempt may take, and maybe accepted. Its answer is reported when it comes.
///
/// Where a carrier takes several mails together, those of a batch are packed in the order in which they come.
/// A batch that is taken over makes the same messages again, so that the receiver can recognise them.
class DeliverySink final : public consumer::Sink {
 public:
  struct Options {
    Dispatcher::Options dispatch{};
    int messages = 64;      ///< how many may be in its open batches
    int message_limit = 1;  ///< tokens in a message, until a batch says otherwise
    DeliveryPolicy policy{};
    Milliseconds grace{5000};  ///< for what is in flight when a stop is requested
    DeliveryWords words{};
  };

  /// What a lane is made of.
  struct Way {
    std::unique_ptr<Carrier> carrier;
    std::optional<config::Rate> rate{};  ///< at which its messages leave at most
    int together = 1;                    ///< how many mails its carrier takes in a message
    bool recognises = false;  ///< whether the receiver takes a message once, however often it is sent
  };

  /// `ways`: those that Composed::lane counts, at least one. `stop_fd` becomes readable when a stop is
  /// requested. The references must outlive this, and so must `tracer`, which may be null.
  DeliverySink(std::unique_ptr<Composer> composer, std::vector<Way> ways, Options options, int stop_fd,
               Log& log, DeliveryLog& delivery_log, consumer::ConsumerObserver& observer,
               trace::MailTracer* tracer = nullptr);

  void attend(claim::LeaseRecord& record) override { record_ = &record; }
  std::size_t most_open() const override { return options_.messages > 1 && pace_.overlaps() ? 2 : 1; }
  int room() const override;
  void begin(const claim::Lease& lease, int line_limit) override;
  void add(const claim::TokenRow& row, std::string_view token) override;
  void skip(const claim::TokenRow& row, const char* defect) override;
  void complete() override { close_message(); }
  consumer::BatchOutcome finish(const std::function<void()>& when_slow) override;
  void forget() override;
  bool is_ready() const override { return !time_to_admission(); }
  bool takes_ahead() override;
  void ask() override { clear(); }
  void consult(claim::SinkBoard& board, bool heard) override;
  void leave(claim::SinkBoard& board) override;
  std::vector<claim::Receipt> take_late() override;
  void finish_late() override;
  TimePoint claims_from() const override;
  std::string unavailability() const override;

 private:
  struct OpenMessage {
    Composed composed;
    TimePoint until{};          ///< it is of no use then
    bool is_concluded = false;  ///< it has its final answer
  };
  struct OpenBatch {
    claim::Lease lease;
    std::int64_t first_message = 0;  ///< its id; the others follow
    std::deque<OpenMessage> messages{};
    std::size_t concluded = 0;  ///< how many of them have their final answer
    int settled = 0;            ///< the tokens of these
    int tokens = 0;             ///< also those without a message
    int carried = 0;            ///< tokens of messages
    std::vector<claim::TokenOutcome> outcomes{};
    std::map<std::string, int, std::less<>> mails_by_recipient{};
    std::vector<std::shared_ptr<Clearance>> clearances{};  ///< of each lane
    bool is_alone = true;                                  ///< no other was open meanwhile
    TimePoint began{};
    TimePoint ended{};  ///< its last answer
  };

  /// A message whose batch is done without its answer.
  struct LateMessage {
    claim::Lease lease;
    Composed composed;
    bool may_be_taken = false;  ///< as it was recorded
  };

  /// The mails that leave together by a lane.
  struct Pack {
    int together = 1;
    bool recognises = false;
    std::optional<Composed> begun{};
  };

  /// As Composer::add(), with a trace of it.
  Composer::Added compose(const claim::TokenRow& row, std::string_view token, DeliveryHistory& history);
  void pack(OpenBatch& batch, Composed composed);
  void close_pack(OpenBatch& batch, Pack& pack);
  void submit(OpenBatch& batch, Composed composed);
  void close_message();
  /// Waits until every message of the oldest batch is concluded, or is_done() otherwise says so.
  void wait_for_answers(const std::function<void()>& when_slow);
  /// Polls until `is_done`; a stop that is requested ends it after Options::grace.
  void poll_answers(const std::function<bool(TimePoint now)>& is_done);
  std::string awaited_in(const OpenBatch& batch) const;
  void take_answers();
  /// Has the open leases recorded for the lanes that ask, and lets their messages leave.
  void clear();
  void clear_leases();
  bool is_asked(std::size_t lane) const;
  /// Lets the attempts begin that ask, but for those whose readers have unsubscribed.
  void permit();
  /// What the next leases begin with.
  std::vector<std::string> sinks_in_session() const;
  int take_overs(const claim::Lease& lease, const Lane& lane) const;
  void record(Dispatched dispatched);
  claim::Receipt late_receipt(const LateMessage& message, const Dispatched& dispatched);
  /// Weighs an answer as it is recorded, and tells the log of a limit.
  void read(Dispatched& dispatched, const Composed& message);
  void conclude(OpenBatch& batch, OpenMessage& message, const Dispatched& dispatched);
  std::vector<claim::TokenOutcome> outcomes_of(const claim::Lease& lease, const Composed& message,
                                               const Dispatched& dispatched);
  /// True if the messages of the oldest batch that are not concluded may be answered later.
  bool may_leave_behind(TimePoint since, TimePoint now) const;
  void leave_behind();
  /// Says, once for many, that the receiver limits messages or connections.
  void note_limit(const Dispatched& dispatched);
  void observe(const Answer& answer, const claim::Lease& lease, const ComposedToken& token);
  bool has_several_lanes() const { return lanes_.size() > 1; }
  std::optional<std::chrono::seconds> time_to_admission() const;
  /// Mails to the recipient (TokenRow::counted_as) that are not recorded in the database.
  int open_mails_to(std::string_view recipient) const;

  std::unique_ptr<Composer> composer_;
  Options options_;
  Spool spool_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Pack> packs_;  ///< of each
  std::vector<std::shared_ptr<Permits>> permits_{};
  std::map<std::int64_t, std::string> withheld_{};  ///< tokens that must not leave any more, and why
  int stop_fd_;
  std::optional<TimePoint> stopped_at_{};  ///< when a stop request was seen
  Log& log_;
  DeliveryLog& delivery_log_;
  consumer::ConsumerObserver& observer_;
  trace::MailTracer* tracer_;
  std::mt19937_64 random_;
  std::deque<OpenBatch> batches_;  ///< the oldest first
  bool is_filling_ = false;        ///< more tokens of the newest come
  std::int64_t next_id_ = 0;       ///< of a message
  TimePoint last_ended_{};         ///< the last answer of the batch before
  ClaimPace pace_;
  claim::LeaseRecord* record_ = nullptr;
  std::shared_ptr<const EventFd> bell_ = std::make_shared<EventFd>();  ///< somebody asks
  std::map<std::int64_t, LateMessage> late_;                           ///< by the message's id
  std::vector<claim::Receipt> answered_late_;                          ///< what became of such
  std::optional<TimePoint> warned_of_limit_{};
};

}  // namespace mailroom::delivery
