// The queue as an interface: what a consumer asks of it, and what it gets. Tests replace the database here.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "crypto/token.hpp"
#include "fate/outcome.hpp"
#include "queue/action.hpp"
#include "queue/queue_definition.hpp"

namespace mailroom::claim {

/// A leased batch and the number of its lease; an acknowledgement names both.
struct Lease {
  std::int64_t batch = 0;
  int attempt = 0;
  std::string queue{};
  std::vector<std::string> begun{};                 ///< the sinks with which it is on record as begun
  std::vector<std::vector<std::string>> earlier{};  ///< the same of the leases before

  bool operator==(const Lease& other) const {
    return batch == other.batch && attempt == other.attempt && queue == other.queue;
  }
};

/// The outcome of the tokens of a batch.
struct BatchCounts {
  int emitted = 0;
  int expired = 0;
  int consumed = 0;
  int wrong_status = 0;
  int invalid = 0;
  std::vector<std::int64_t> skipped_ids{};  ///< ids of skipped tokens, ascending

  int skipped() const { return expired + consumed + wrong_status + invalid; }
};

/// What became of one attempt to deliver a token.
struct TokenOutcome {
  std::int64_t token = 0;
  std::string action{};                           ///< of the token
  fate::Outcome state = fate::Outcome::accepted;  ///< one of delivery_outcomes
  int attempts = 0;                               ///< how many attempts it counts as: 0 or 1
  int unknowns = 0;                       ///< how often the token may have been accepted without an answer
  std::chrono::duration<double> wait{};   ///< of deferred: how long to wait before the next attempt
  std::optional<WallTime> answered_at{};  ///< when the receiver answered; nullopt if nothing was tried
  std::string sink{};                     ///< host and port; empty if nothing was tried
  std::string address{};                  ///< to which it was mailed; empty for a line
  std::string counted_as{};               ///< TokenRow::counted_as
  std::string message_id{};               ///< of the mail; empty if there is none, or nobody tells
  std::string content_hash{};             ///< of the mail, in hex; empty unless it may have been accepted
  std::string templates{};                ///< the files that the mail was made of, by comma; may be empty
  std::string suppress{};                 ///< why its address gets no more mails; empty if it does
  int code = 0;                           ///< of the answer; 0 for none
  std::string reply{};  ///< printable: the answer, or the reason; empty leaves the last answer on record
};

/// Acknowledges that a batch is written, and ends its lease.
struct Receipt {
  Lease lease;
  BatchCounts counts;
  std::optional<std::vector<TokenOutcome>> outcomes{};  ///< nullopt from a sink without outcomes
  std::optional<TimePoint> signed_at{};                 ///< when its last token was signed
  std::optional<TimePoint> written_at{};                ///< when the sink had finished it
};

struct ClaimRequest {
  std::string queue{};                 ///< one of the session's; empty for the first
  int limit = 0;                       ///< due tokens per batch; 0 only acknowledges
  bool partial = false;                ///< take a batch that is not full
  bool take_over = true;               ///< take over abandoned batches
  bool publish_cursor = false;         ///< update jobs.last_seq
  bool without_lock = false;           ///< limit 0: do not wait for the lock; this session took the batch
  bool routine = false;                ///< no notification: usually there is nothing to claim
  bool wakes = false;                  ///< notify the collectors of other queues: inserts do not
  std::optional<std::int64_t> held{};  ///< another batch of this session, which its sink has not finished
  std::optional<Receipt> receipt{};    ///< of a batch that it has
};

/// Of how many scheduled messages tokens are made at once.
constexpr int release_limit = 1000;

struct ClaimReply {
  std::optional<Lease> lease{};  ///< the batch taken, to be fetched
  int size = 0;                  ///< its tokens
  int pending = 0;               ///< due tokens that were seen and not taken
  std::int64_t last = 0;         ///< every due token up to this id was seen
  bool more = false;             ///< another claim should follow at once
  bool receipt_void = false;     ///< the acknowledged batch had been taken over: it may be emitted twice
  std::optional<std::int64_t> dead{};  ///< a batch that became a dead letter after too many attempts
  int skipped = 0;                     ///< expired and consumed tokens that the claim skipped and recorded
  /// Until the budgets of the queue allow the next token; nullopt while the queue is paused.
  std::optional<Milliseconds> wait = Milliseconds(0);
  int skipped_expired = 0;  ///< of `skipped`, the expired ones
  bool messages = false;    ///< some tokens of the batch are those of messages
  bool is_idle = false;     ///< a routine claim found nothing to do, and released what was scheduled
  int released = 0;         ///< scheduled messages of which it made tokens
  // Of an idle claim.
  std::int64_t newest = 0;      ///< the newest batch of the queue
  bool inserts_notify = false;  ///< no collector works without notifications
  std::optional<Milliseconds>
      next{};  ///< until a deferred token or a scheduled message is due; nullopt for none
};

enum class TokenState { due, consumed, expired, wrong_status };

/// Reads a result of mailroom_token_state(). Throws Error(failed) for a state of a newer version.
TokenState parse_token_state(std::string_view text);

/// What a message says, for whom it is and how it is carried: a row of mailroom_messages. The views are valid
/// as long as those of the token.
struct MessageContent {
  std::int64_t id = 0;
  // One mailbox an element: `ada@example.org` or `Ada <ada@example.org>`. All empty: it goes to its account.
  std::vector<std::string> recipients{};
  std::vector<std::string> cc{};
  std::vector<std::string> bcc{};
  std::string_view sender{};    ///< a mailbox; empty for that of the settings
  std::string_view reply_to{};  ///< the same, or several with commas between them
  std::string_view headers{};   ///< a JSON object of texts; empty for none
  /// Of the message, else of its action; nullopt if it has content of its own.
  std::optional<std::string_view> template_name{};
  std::string_view locale{};  ///< `de-AT`; empty for none
  std::string_view data{};    ///< JSON, for the template; empty for none
  // Its own content.
  std::optional<std::string_view> subject{};
  std::optional<std::string_view> text{};
  std::optional<std::string_view> html{};
  // A mail that its program has made, instead of all of that.
  std::optional<std::int64_t> raw_size{};  ///< in bytes; nullopt for none
  std::optional<std::string_view> raw{};   ///< only for a session that reads them
  std::optional<std::string_view>
      return_path{};               ///< its envelope sender, empty for none; nullopt: that of the settings
  bool keeps_return_path = false;  ///< bounces come back to that, whatever the settings say
  std::string_view profile{};      ///< empty for `default`
  std::string_view topic{};        ///< what its recipients can unsubscribe from; empty for none
  std::string_view reference{};    ///< of the application; empty for none
  int attachments = 0;             ///< how many; they are read when the mail is written
};

/// What a trace of a token needs beside the token.
struct TraceOrigin {
  std::string_view traceparent{};  ///< empty for none
  std::chrono::sys_time<std::chrono::microseconds> asked_at{};
  bool was_tried = false;  ///< an attempt is on record
};

/// A token of a batch with its account, as of the claim or later. The views are valid only during the
/// callback of fetch().
struct TokenRow {
  std::int64_t id = 0;
  const queue::Action* action = &queue::Actions::of_sign_up();  ///< never null; outlives the row
  std::optional<crypto::Secret> secret{};  ///< nullopt if it is not 32 bytes, or its action has no path
  std::string_view code;
  std::int64_t expires_at = 0;  ///< seconds since 1970, as the line has it
  std::string_view email;
  std::string_view login;
  TokenState state = TokenState::due;
  std::int64_t created_at = 0;  ///< seconds since 1970
  // The rest is read only for a sink with outcomes.
  std::int64_t account = 0;             ///< 0: it has none
  int attempts = 0;                     ///< earlier attempts to deliver it
  int unknowns = 0;                     ///< of these, how many may have been accepted without an answer
  std::optional<std::int64_t> newer{};  ///< a newer recovery token of the same account that is due
  int mailed = 0;                       ///< mails to its address within the period that the session counts
  std::string_view counted_as{};  ///< that address, for one comparison; empty if the session counts none
  std::optional<std::int64_t> resent_at{};  ///< when an operator had it emitted again
  std::string_view suppressed{};            ///< why its address gets no mail; empty if it does
  std::string_view home{};                  ///< what the ids of its mail are bound to: mailroom_home_name()
  std::string_view locale{};                ///< of its message, or of its account; empty for none
  std::string_view mail_key{};  ///< in the Message-ID: tells tokens apart whose ids were used again
  TraceOrigin trace{};          ///< only for a session that reads it
  // Of a token that a message made. `email` is the recipient's address.
  std::optional<std::int64_t> message{};
  int recipient = 0;                        ///< which of the message's, counted from 1 over to, cc and bcc
  const MessageContent* content = nullptr;  ///< set if `message` is

  /// When its mail begins to be due, in seconds since 1970: the Date, from which its life is counted.
  std::int64_t dated() const { return resent_at.value_or(created_at); }
};

/// Whether inserts notify collectors.
enum class Waking {
  stay_polling,     ///< inserts do not notify until this session starts to listen or ends; false if refused
  start_listening,  ///< inserts notify again
  drain,            ///< inserts notify again, and the other collectors start draining
  ask,              ///< asks whether transactions are open that may have inserted without notifying
};

/// What consumers share about a sink, such as a relay.
struct SinkState {
  std::string name{};    ///< host and port
  int failures = 0;      ///< in a row; 0: it works
  WallTime since{};      ///< the first of them
  WallTime failed_at{};  ///< the last of them
  WallTime probe_at{};   ///< when a consumer may try it again
  std::string reason{};  ///< the last failure, printable
  std::string learnt{};  ///< JSON of what it refuses while it works; or empty
  std::string seen{};    ///< the same before the consumer has changed it; others may have, too

  bool operator==(const SinkState&) const = default;
};

/// Where consumers share the states of their sinks.
class SinkBoard {
 public:
  virtual ~SinkBoard() = default;

  /// Tells the others `news`, and returns those of `names` that are unavailable, or refuse something. With
  /// `probe`, the caller may try one whose probe_at has come, and no other consumer tries it for that long.
  /// In a transaction of its own.
  virtual std::vector<SinkState> share(const std::vector<SinkState>& news,
                                       const std::vector<std::string>& names,
                                       std::optional<Milliseconds> probe) = 0;
  /// The leases that are claimed from now on begin with a session with these sinks; others do so only when
  /// that is recorded (LeaseRecord).
  virtual void announce(const std::vector<std::string>& /*sinks*/) {}
};

/// A token whose reader gets no mail of its topic any more.
struct WithheldToken {
  std::int64_t token = 0;
  std::string reason{};  ///< as TokenRow::suppressed
};

/// Where a sink has it recorded that tokens may be with the receiver, before they are.
class LeaseRecord {
 public:
  virtual ~LeaseRecord() = default;

  /// Records for `leases` that a session with `sinks` has begun, and returns the batches of those that are
  /// still this consumer's; nullopt if that cannot be recorded now.
  virtual std::optional<std::vector<std::int64_t>> begin(const std::vector<Lease>& leases,
                                                         const std::vector<std::string>& sinks) = 0;
  /// The tokens whose mails must not leave, and why; nullopt if that cannot be known now. Sees whatever was
  /// committed before the call.
  virtual std::optional<std::vector<WithheldToken>> withheld(const std::vector<std::int64_t>& tokens) = 0;
  /// Keeps the leases while the sink waits for the receiver: makes a session with the database if the last
  /// one has ended.
  virtual void keep() = 0;
};

/// The notifications since the last call. With several kinds, one call returns one of them.
enum class Notified {
  no,
  poll,    ///< tokens arrived
  drain,   ///< another collector stopped polling: open transactions may not have notified
  sinks,   ///< a sink has become unavailable or available
  queues,  ///< the definition of a queue or of an action has changed
};

/// Asks for a claim, or for none.
using NextClaim = std::function<const ClaimRequest*()>;

/// A collector's session with its queues. Its leases end with it. Every call throws ConnectionLost when the
/// session has ended.
class QueueSession : public SinkBoard {
 public:
  /// A queue that shares nothing returns none.
  std::vector<SinkState> share(const std::vector<SinkState>& /*news*/,
                               const std::vector<std::string>& /*names*/,
                               std::optional<Milliseconds> /*probe*/) override {
    return {};
  }
  /// The queues of this session that are defined otherwise than by default. Reads the actions again, too.
  virtual std::vector<queue::QueueRecord> definitions() { return {}; }
  /// The names of the actions, as of the last definitions().
  virtual std::vector<std::string> action_names() const { return {}; }
  /// Acknowledges, then takes the next batch, in a transaction of its own. Throws DatabaseError MR001 when
  /// the queue has been dropped.
  virtual ClaimReply claim(const ClaimRequest& request) = 0;
  /// Calls `each` for the rows of a batch that a claim of this session took, ordered by id; for none if the
  /// batch has been taken over. A transaction may be open during the call, so `each` must not block.
  virtual void fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) = 0;
  /// fetch(), and at the same time the claim that `next` asks for; returns its reply. Returns nullopt if
  /// `next` asks for none, and from a session that cannot do both at once: it may not even call `next`, or
  /// call it before the rows or after each of them, until it asks for a claim. What `next` returns is valid
  /// until then. Throws what fetch() throws, and may throw what the claim does; or it returns nullopt, as the
  /// next claim will meet the same. Then a later claim takes over what this one has taken.
  virtual std::optional<ClaimReply> fetch_and_claim(const Lease& lease,
                                                    const std::function<void(const TokenRow&)>& each,
                                                    const NextClaim& /*next*/) {
    fetch(lease, each);
    return std::nullopt;
  }
  /// As LeaseRecord::begin(), and announce() of these sinks too. A queue without records has nothing to
  /// write.
  virtual std::vector<std::int64_t> begin(const std::vector<Lease>& leases,
                                          const std::vector<std::string>& /*sinks*/) {
    std::vector<std::int64_t> batches;
    for (const auto& lease : leases)
      batches.push_back(lease.batch);
    return batches;
  }
  /// As LeaseRecord::withheld(). A queue without messages withholds none.
  virtual std::vector<WithheldToken> withheld(const std::vector<std::int64_t>& /*tokens*/) { return {}; }
  /// Takes the leases of an earlier session of this consumer that nobody else has taken over.
  virtual void keep(const std::vector<Lease>& /*leases*/) {}
  /// The batch of `late` is acknowledged, and has recorded tokens without an answer as deferred. Replaces
  /// these records by what became of the tokens. Their `unknowns` are added to those of the record: -1 if the
  /// outcome is known now. A queue without records of deliveries has none.
  virtual void report(const Receipt& /*late*/) {}
  /// Makes tokens of messages whose time has come, of at most release_limit. Returns of how many. A queue
  /// without a schedule has none.
  virtual int release() { return 0; }
  virtual Notified take_notifications() = 0;
  /// Does what `waking` says. `ask` returns true while a transaction is open that was open at the first `ask`
  /// after this session began or started to listen: a claim sees all others, or they notify.
  virtual bool arrange(Waking waking) = 0;
  /// Records what this consumer has done or found, an operation of `kind` with `details`, a JSON object.
  /// Throws DatabaseError if its role may not. A queue without records keeps none.
  virtual void record(const std::string& /*kind*/, const std::string& /*details*/) {}
  /// The newest batch on record, of all queues; nullopt without records.
  virtual std::optional<std::int64_t> newest_batch() { return std::nullopt; }
  /// Makes a round trip, the only way to detect a dead peer.
  virtual void check_health() = 0;
  /// For poll(2): readable after a notification or the end of the session.
  virtual int socket() const = 0;
};

/// Makes a session, attached and listening.
using SessionFactory = std::function<std::unique_ptr<QueueSession>()>;

}  // namespace mailroom::claim
