// Which tokens are delivered, when one is tried again, and what is recorded of each.
//
// It judges one token at a time, between batches. It does not choose a relay, a rate or the moment of an
// attempt (dispatcher, endpoint), and does not write: what it returns is recorded with the next claim.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "claim/queue_session.hpp"
#include "config/settings.hpp"
#include "delivery/answer.hpp"
#include "trace/mail_tracer.hpp"

namespace mailroom::delivery {

struct DeliveryPolicy {
  config::WhenUnknown when_unknown = config::WhenUnknown::resend;
  bool supersede = true;  ///< mail only the newest of several recovery tokens of an account
  std::optional<config::Rate> per_recipient{};  ///< how many mails of a queue an address may get
  int resends = 1;                ///< with WhenUnknown::resend: how often a token is delivered again
  bool suppress_refused = false;  ///< an address that is refused for good gets no more mails
  bool is_recognised = false;     ///< the receiver recognises what a batch that was cut off has sent
};

/// What is known of a token before an attempt.
struct DeliveryHistory {
  std::int64_t token = 0;
  std::string action{};
  claim::TokenState state = claim::TokenState::due;
  const char* defect = nullptr;         ///< why it cannot be mailed, for example its address; null if it can
  int attempts = 0;                     ///< earlier attempts that the relay answered, or may have accepted
  int unknowns = 0;                     ///< earlier attempts that it may have accepted, in other batches
  int take_overs = 0;                   ///< earlier leases of its batch that may have mailed it
  std::optional<std::int64_t> newer{};  ///< a newer recovery token of the same account that is due
  std::int64_t created_at = 0;          ///< seconds since 1970; 0: not known
  std::int64_t expires_at = 0;          ///< the same
  std::string counted_as{};             ///< its address, as DeliveryPolicy::per_recipient counts it
  int mailed = 0;            ///< mails to its address within the period of DeliveryPolicy::per_recipient
  std::string suppressed{};  ///< why its address gets no mail; empty if it does
  bool has_topic = false;    ///< its reader may unsubscribe at any moment
  std::shared_ptr<trace::TokenTrace> trace{};  ///< null without traces
};

/// A token of a message, and what its answer is judged by.
struct ComposedToken {
  DeliveryHistory history;
  std::string text;            ///< which no answer may repeat
  std::string address{};       ///< to which its message is mailed; empty for a line
  std::int64_t dated = 0;      ///< since when it has been due, in seconds since 1970
  std::string message_id{};    ///< of its mail; empty for a line
  std::string content_hash{};  ///< SHA-256 of its mail, in hex; empty if that is not recorded
  std::string templates{};     ///< the files that its mail was made of, by comma; may be empty
};

/// `take_overs`: earlier leases of the batch that may have mailed it.
DeliveryHistory history_of(const claim::TokenRow& row, int take_overs, const char* defect = nullptr);

/// The outcome of a token that must not be mailed; nullopt if it may be. A token that an earlier attempt may
/// have mailed is `unknown`, whatever the reason.
std::optional<claim::TokenOutcome> outcome_without_attempt(const DeliveryHistory& history,
                                                           const DeliveryPolicy& policy);

/// What is recorded of a mail to an address that gets none: `why` as the database says it.
std::string suppressed_reason(std::string_view why);

/// The outcome, deferred or cancelled, of a token of which the configuration has no mail: one that is
/// deferred is looked at again after a minute. One that an earlier attempt may have mailed is `unknown`.
claim::TokenOutcome withheld_outcome(const DeliveryHistory& history, fate::Outcome state, std::string reason);

/// The outcome, until its answer comes, of an attempt that its batch does not wait for: deferred for `wait`,
/// within which the answer comes if this consumer lives. `may_be_taken`: it may have been accepted.
claim::TokenOutcome unanswered_outcome(const DeliveryHistory& history, Milliseconds wait, bool may_be_taken);

/// The outcome of an attempt. A deferred token waits 15 s, 30 s, 1, 2 and then 4 minutes, 20 % more or less
/// by `jitter` from -1 to 1, or longer if the relay names a time: but where the link does not live that
/// long, until shortly before its end. A token that the relay was too busy to look at counts no attempt.
/// One that waited for its turn comes back within 2 s, and one whose refusal seemed to be about every mail
/// after 15 s.
claim::TokenOutcome outcome_of_attempt(const DeliveryHistory& history, const Answer& answer,
                                       const DeliveryPolicy& policy, double jitter);

/// `reply`, or a note instead of it if it repeats a part of `token` from which the rest could be looked up:
/// the database must not show tokens.
std::string recordable_reply(const std::string& reply, std::string_view token);

/// What `answer` says of one of the tokens of its message: its own verdict, or that of the message.
Answer answer_to(const Answer& answer, const ComposedToken& token);

/// The outcome of a token from the answer to it. `may_be_taken`: an earlier try within this batch was not
/// answered.
claim::TokenOutcome outcome_of(const Answer& answer, const ComposedToken& token, bool may_be_taken,
                               const DeliveryPolicy& policy, double jitter);

/// A reply as it is recorded: printable, at most 200 bytes; a note instead of it if it repeats a part of one
/// of the tokens.
std::string shown_reply(const std::string& reply, const std::vector<ComposedToken>& tokens);

}  // namespace mailroom::delivery
