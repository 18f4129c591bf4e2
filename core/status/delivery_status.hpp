// How the deliveries of a queue went lately, what came back of them, and which sinks are unavailable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "fate/outcome.hpp"
#include "status/pending_tokens.hpp"

namespace mailroom::status {

/// A sink, such as a relay or a broker, that takes nothing now.
struct UnavailableSink {
  std::string name;  ///< host and port, or a program and its host
  int failures = 0;  ///< in a row
  Milliseconds lasts{};
  Milliseconds probe_in{};  ///< 0 if a consumer may try it now
  std::string reason;       ///< the last failure, in the words of the sink
};

/// What the receiver has refused since it accepted something last, within an hour.
struct RefusedSince {
  std::int64_t tokens = 0;    ///< rejected, or deferred by an answer
  std::int64_t deferred = 0;  ///< of these
  Milliseconds lasts{};       ///< since the first of these answers
  std::string last;           ///< `451 4.3.0 later`
};

/// Mails that could not be made within an hour, for one reason: a template, or data that it needs.
struct UnmadeMails {
  std::int64_t tokens = 0;
  Milliseconds last{};  ///< how long ago
  std::string why{};    ///< `receipt.txt:1: neither the data nor mailroom has {{totl}}`
};

/// What the receiver rejected within an hour, at most 10,000.
struct RejectedMails {
  std::int64_t mails = 0;
  std::string actions{};  ///< `45 of newsletter, 3 of receipt`
  std::string last{};     ///< the last answer: `550 5.1.1 no such user`
};

/// What was skipped since the last batch with an emitted token, within an hour, as the account had the wrong
/// status.
struct UnfitSince {
  std::int64_t tokens = 0;
  Milliseconds lasts{};  ///< since the first of them
};

/// The tokens of a queue that wait for another attempt.
struct DeferredTokens {
  std::int64_t tokens = 0;
  std::optional<Milliseconds> next_in;      ///< until the first of these attempts; 0 if it is due
  std::optional<Moment> oldest_created_at;  ///< of those that are neither consumed nor expired
  std::int64_t withheld = 0;                ///< of these, for which the configuration lacks something
  std::string withheld_for;                 ///< what, of the newest: `there is no profile acme`
};

/// Mails that a sink refuses while it takes others.
struct RefusedPart {
  std::string sink;
  std::string of;        ///< `from sales@shop.example`, `to big.example`
  Milliseconds lasts{};  ///< since the first refusal
  double rate = 0;       ///< of a domain: how many it takes in a second, about; else 0
  std::string why;       ///< `450 4.7.1 too many mails`
};

/// The deliveries of a queue. Empty but for `unfit` for a queue whose tokens are written to standard output.
struct DeliveryStatus {
  /// The tokens whose last outcome was recorded within an hour, by that outcome; most frequent first, and
  /// without outcomes of no token.
  std::vector<std::pair<fate::Outcome, std::int64_t>> last_hour;
  std::int64_t perhaps_twice = 0;  ///< of last_hour, those that the receiver may have taken more than once
  RefusedSince refused;
  RejectedMails rejected{};
  UnfitSince unfit;
  UnmadeMails unmade;
  std::optional<Milliseconds> last_accepted;  ///< how long ago, if within an hour
  DeferredTokens deferred;
  ExpiredTokens expired;
  std::vector<UnavailableSink> sinks;        ///< of all queues
  std::vector<RefusedPart> refused_parts{};  ///< of all queues

  /// Of last_hour, 0 without.
  std::int64_t count_last_hour(fate::Outcome outcome) const;
  bool empty() const { return last_hour.empty() && deferred.tokens == 0 && sinks.empty(); }
};

/// What came back within the last hour of mails that a relay had accepted.
struct CameBack {
  bool is_known = true;         ///< false: the role may not read mailroom_bounces, or row security hides some
  std::int64_t hard = 0;        ///< mails of the queue to addresses that take none
  std::int64_t bounced = 0;     ///< other mails of the queue that did not arrive
  std::int64_t complaints = 0;  ///< of the queue
  std::int64_t unsubscribed = 0;  ///< mails of the queue whose readers want no more of them
  std::int64_t delivered = 0;     ///< of the queue
  std::int64_t unmatched = 0;     ///< of every queue: of no mail that is known, or not understood

  bool empty() const { return hard + bounced + complaints + unsubscribed + delivered + unmatched == 0; }
};

// These functions run within the caller's transaction.

DeferredTokens read_deferred_tokens(pqxx::transaction_base& transaction, const std::string& queue);

DeliveryStatus read_delivery_status(pqxx::transaction_base& transaction, const std::string& queue);

/// The sinks that take nothing now, of all queues.
std::vector<UnavailableSink> read_unavailable_sinks(pqxx::transaction_base& transaction);

CameBack read_came_back(pqxx::transaction_base& transaction, const std::string& queue);

}  // namespace mailroom::status
