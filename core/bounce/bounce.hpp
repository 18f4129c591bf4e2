// What came back after a relay took a mail, and what it says of each recipient.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "bounce/bounce_reason.hpp"

namespace mailroom::bounce {

/// What a notification says of one recipient.
struct BounceRecipient {
  /// The address that the mail was sent to, with the domain in lower case; empty if the report hides it. It
  /// is Original-Recipient if there is one, since Final-Recipient may be where that address led to.
  std::string address;
  /// Where that address led to, if the report says both; else empty.
  std::string final_address{};
  BounceKind kind = BounceKind::undetermined;
  BounceReason reason = BounceReason::undetermined;
  std::string status;      ///< enhanced status as `5.1.1` (RFC 3463), or empty
  int code = 0;            ///< reply code of SMTP; 0 for none
  std::string diagnostic;  ///< words of the remote server: one line of UTF-8, at most max_diagnostic bytes
  std::string remote_mta;  ///< the server that said it, or empty
};

/// How an event of a provider names the mail that it is about.
struct ProviderMail {
  std::string id;          ///< by which the provider's answer named the mail; empty for none
  std::string queue;       ///< tags that the mail left with; empty for none
  std::int64_t token = 0;  ///< 0 for none
  std::optional<Moment> sent_at;
  std::string message_id{};  ///< that the provider gave it, without angle brackets; empty if it does not tell
};

struct Bounce {
  /// At most max_recipients. None: it is a bounce, and what it is about could not be read.
  std::vector<BounceRecipient> recipients;
  /// The id of the copy, as ENVID of our envelope (RFC 3461) or a header that a provider kept; empty for
  /// none.
  std::string envelope_id;
  std::string message_id;       ///< Message-ID of the mail it is about, without <>; empty for none
  std::vector<std::string> to;  ///< addresses that the report was sent to, of the envelope first
  /// Envelope senders of the mail that came back: only who got that copy knows them.
  std::vector<std::string> returned_from{};
  ProviderMail mail{};  ///< of an event
  std::string event{};  ///< of an event: the same text for each copy of it; empty: its bytes are
  std::optional<Moment> happened_at{};  ///< of what is told late
  bool is_standard = false;             ///< had a part message/delivery-status or message/feedback-report
  bool is_report = true;  ///< false: nothing in it says that it came back, or that a program answered
  std::string words{};    ///< begin of its subject and text, if there are no recipients
};

namespace bounce_limits {
constexpr std::size_t max_diagnostic = 500;
constexpr std::size_t max_recipients = 1000;
/// What is behind it is not read: the mail that is sent back stands last.
constexpr std::size_t max_bytes = std::size_t{1} << 20;
}  // namespace bounce_limits

/// Reads a mail that came back: delivery status notifications (RFC 3464, RFC 6533), feedback reports (RFC
/// 5965), automatic replies (RFC 3834), and recognises bounces in no standard form. nullopt if it is none of
/// these. Never throws for what a mail may hold; takes time in proportion to its size.
std::optional<Bounce> read_bounce(std::string_view bytes);

/// The same for whatever mail: without recipients, and with its words, if it is none of these.
Bounce read_mail(std::string_view bytes);

/// Reads an event by which a provider says what became of a mail: the first of read_events(). nullopt for
/// anything else, and for events that say nothing of an arrival, such as of a click. Never throws for what an
/// event may hold.
std::optional<Bounce> read_event(std::string_view bytes);

/// True if `bytes` begin as JSON does, and no mail.
bool is_event(std::string_view bytes);

}  // namespace mailroom::bounce
