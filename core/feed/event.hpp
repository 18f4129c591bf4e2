// The events that tail and audit show, and the functions that read the rows behind them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "accounts/account_lookup.hpp"
#include "queue/batch_lookup.hpp"
#include "schema/bookkeeping.hpp"
#include "selection/id_range.hpp"

namespace mailroom::feed {

/// The kind of an event. tail shows events with the same time in this order.
enum class EventKind : std::uint8_t {
  suspended,
  restored,
  rewound,
  replayed,
  pruned,
  queue_created,
  queue_changed,
  paused,  ///< a queue, as the next two
  resumed,
  dropped,
  budget_changed,
  action_created,  ///< a kind of mail, as the next two
  action_changed,
  action_retired,
  reloaded,   ///< a consumer took a new configuration
  went_back,  ///< a consumer found an older state of the database than it knew
  revoked,
  message_cancelled,
  message_rescheduled,
  adopted,             ///< the database: mails are sent from it from then on
  forgotten,           ///< addresses
  address_suppressed,  ///< by an operator, as the next one
  address_freed,
  limit_changed,  ///< how many mails a role may ask for
  topic_created,  ///< what people can unsubscribe from, as the next two
  topic_changed,
  topic_retired,
  unsubscribed,  ///< an address from a topic, as the next one
  resubscribed,
  key_created,  ///< with which programs ask for mails over HTTP, as the next one
  key_revoked,
  created,  ///< an account or a token
  taken_over,
  dead,
  skipped,
  emitted,
  delivery,  ///< an outcome of a token that was mailed or handed over; its state says which
  consumed,
  // Only audit shows the following.
  leased,
  abandoned,
  activated,
  expired,
  migrated,
};

/// The name of a kind: `taken-over`.
std::string_view kind_text(EventKind kind);

/// What mailroom_operations.kind calls the kind with this name: `rewind`; empty for other kinds.
std::string_view operation_text(std::string_view text);

/// Returns the kind with this kind_text() or operation_text(). Throws std::logic_error if there is none.
EventKind find_kind(std::string_view text);

/// A row of tokens with its account. Never holds the secret or the code.
struct StoredToken {
  std::int64_t id = 0;
  std::string action{};               ///< as the database names it
  std::string state{};                ///< now: `due`, `consumed`, `expired` or `wrong status`
  accounts::AccountRecord account{};  ///< id 0 if it has none: then the email is that of the recipient
  Moment created_at{};
  Moment expires_at{};
  std::optional<Moment> consumed_at{};
  std::optional<std::int64_t> message{};  ///< that made it
  std::string reference{};                ///< of that message; empty for none
  std::string consumed_as{};              ///< `cancelled` or `replaced` with its message; else empty
  bool has_link = true;                   ///< as its action says
};

/// A row of mailroom_operations: an action of an operator or an application.
struct Operation {
  std::int64_t id = 0;
  Moment at{};
  EventKind kind{};
  std::string actor{};
  std::string db_user{};
  std::string reason{};
  std::string queue{};
  std::optional<accounts::AccountRecord>
      account{};          ///< id, email and login, which are empty if it was deleted
  std::string details{};  ///< a JSON object
  std::vector<selection::IdRange>
      tokens{};  ///< those of the requested tokens that it rewound, replayed or revoked
  std::vector<std::int64_t> cut_batches{};  ///< open batches that it removed tokens from
  bool is_forward = false;                  ///< it moved the cursor forward and skipped the tokens between
};

/// A claim skipped a token that was not due.
struct TokenSkip {
  StoredToken token{};
  std::int64_t batch = 0;  ///< the record of the claim
  std::string queue{};
  std::string reason{};         ///< `expired`, `consumed` or `wrong status`; empty if unknown
  bool reason_certain = false;  ///< recorded, not derived from the present state
};

/// An outcome of a delivery: what the receiver (a relay, a program or a server) answered, or why none was
/// asked.
struct DeliveryAttempt {
  StoredToken token{};  ///< only the id, unless the reader of the row knows the token
  std::string queue{};
  Moment at{};
  std::string state{};  ///< `accepted`, `deferred`, `rejected`, `unknown`, `expired` or `cancelled`
  std::string sink{};  ///< of the receiver: host and port, or a program and its host; empty if none was asked
  std::string address{};  ///< to which it was mailed; empty if it was not
  std::string key{};      ///< fingerprint of the key that signed it; empty if its batch names none
  int code = 0;           ///< of its reply; 0 for none
  /// Its reply, or the reason. Of `deferred` it may be that of an earlier outcome; empty if there was
  /// none.
  std::string reply{};
  std::string message_id{};  ///< of the mail; empty if there is none, or nobody tells

  /// A rewind replaces the state of a deferred delivery, and keeps its answer. Any other cancellation has a
  /// reason instead.
  bool is_cancelled_by_rewind() const { return state == "cancelled" && (reply.empty() || !sink.empty()); }
};

/// A row of mailroom_deliveries: the delivery of a token in a queue, as a mail or to a program or server.
struct DeliveryRecord {
  std::int64_t token = 0;
  std::string queue{};
  std::vector<DeliveryAttempt> attempts{};  ///< oldest first, at least one; the last has the present state
  int counted = 0;                          ///< how many attempts were answered, or may have been accepted
  int unknowns = 0;                         ///< of these, how many it may have accepted
  std::int64_t batch = 0;                   ///< of the last outcome
  std::optional<Moment> not_before{};       ///< when a deferred delivery may be tried again
  std::optional<Moment> accepted_at{};      ///< when it was last accepted, whatever its state is now

  /// What came back after it was accepted, oldest first: with the state `bounced`, `complained`, `delivered`
  /// or `auto_reply`, the remote server as sink, and why as reply.
  std::vector<DeliveryAttempt> reports{};
  /// Of `reports` the place of the one that decides what became of the mail that was accepted last.
  std::optional<std::size_t> deciding_report{};

  const DeliveryAttempt& last() const { return attempts.back(); }
};

/// An event of the tail or of a history, with the row that records it.
struct Event {
  EventKind kind{};
  Moment at{};
  std::variant<Operation, StoredToken, TokenSkip, queue::BatchRecord, DeliveryAttempt,
               accounts::AccountRecord, schema::SchemaChange>
      record{};
  std::optional<std::vector<std::int64_t>> matches{};  ///< the tokens of a batch that a filter asks for

  /// Null if the event is not recorded in such a row.
  const StoredToken* token() const { return std::get_if<StoredToken>(&record); }
  const queue::BatchRecord* batch() const { return std::get_if<queue::BatchRecord>(&record); }
  const Operation* operation() const { return std::get_if<Operation>(&record); }
  const DeliveryAttempt* delivery() const { return std::get_if<DeliveryAttempt>(&record); }

  /// The token that the event is about; null if there is none, or several.
  const StoredToken* subject_token() const { return delivery() != nullptr ? &delivery()->token : token(); }
  /// The account that the event is about; null if there is none.
  const accounts::AccountRecord* account() const;
  std::string queue() const;  ///< empty if there is none
  std::string actor() const;  ///< the collector of a batch, or the actor of an operation

  /// One of state_text(): a created token and a delivery have their own state, any other event its kind.
  std::string state() const;
  /// True for events of tokens and accounts.
  bool has_whole_seconds() const {
    return token() != nullptr || std::holds_alternative<accounts::AccountRecord>(record);
  }
  /// `at`, shifted for the order of events within one second.
  Moment order() const;
};

/// What order() adds to the time of a token's event.
std::chrono::microseconds order_shift(EventKind kind);

/// Every state that an event of the tail can have, in the order in which a token meets them.
const std::vector<std::string>& state_text();

// Reads the rows that record events; queue/batch_lookup.hpp reads those of batches. Each function runs within
// the caller's transaction. The state of a token is that at the start of the transaction.

/// Returns those of the tokens that exist, in any order.
std::vector<StoredToken> find_tokens(pqxx::transaction_base& transaction,
                                     const std::vector<std::int64_t>& ids);

/// The tokens of an account, newest first.
struct AccountTokens {
  std::vector<StoredToken> newest{};  ///< at most `limit`
  std::int64_t total = 0;
};
AccountTokens find_tokens_of(pqxx::transaction_base& transaction, std::int64_t account, std::int64_t limit);

/// Returns the deliveries of those of the tokens that have any, ordered by token and queue. Runs one
/// statement, which reads only rows of these tokens.
std::vector<DeliveryRecord> find_deliveries(pqxx::transaction_base& transaction,
                                            const std::vector<selection::IdRange>& tokens);

/// True if a record of this time can be of the token: not of an earlier token with its id.
bool can_be_of(const StoredToken& token, Moment at);

/// Returns those of the operations that exist, in any order.
std::vector<Operation> find_operations(pqxx::transaction_base& transaction,
                                       const std::vector<std::int64_t>& ids);

/// Returns the operations on an account, oldest first.
std::vector<Operation> operations_on_account(pqxx::transaction_base& transaction, std::int64_t account);

/// Returns what stopped the mails to one of these addresses, in whichever case they are written, or let it
/// get some again, oldest first.
std::vector<Operation> operations_on_addresses(pqxx::transaction_base& transaction,
                                               const std::vector<std::string>& addresses);

/// Returns the cancellations of messages by operators, oldest first.
std::vector<Operation> operations_on_messages(pqxx::transaction_base& transaction,
                                              const std::vector<std::int64_t>& messages);

/// Returns the rewinds, replays and revocations since `since` that touched one of `tokens` or removed tokens
/// from open batches, and the creations of queues since then, oldest first.
std::vector<Operation> operations_on_tokens(pqxx::transaction_base& transaction,
                                            const std::vector<selection::IdRange>& tokens, Moment since);

/// Returns the operations from `since` to before `until`, which have whole seconds: the newest `limit`,
/// newest first.
std::vector<Operation> list_operations(pqxx::transaction_base& transaction, Moment since, Moment until,
                                       std::int64_t limit);

}  // namespace mailroom::feed
