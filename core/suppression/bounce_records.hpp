// Records what reports say, once each, of the mails that they are about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bounce/bounce.hpp"
#include "bounce/provider.hpp"
#include "config/rate.hpp"
#include "crypto/key_ring.hpp"
#include "db/connection.hpp"

namespace mailroom::suppression {

/// A mail that came back, or that came to the address of bounces, or an event of a provider.
struct Report {
  std::string digest;  ///< SHA-256 of its bytes, or of what copies of an event share, as hexadecimal digits
  std::string begin;   ///< of its bytes, for a look; empty if an id that one of our keys has made is in it
  std::optional<bounce::Bounce> bounce{};  ///< nullopt: it says nothing of a mail that came back or arrived
  std::vector<std::int64_t> tokens{};      ///< whose mail it is, by ids that one of our keys has made
  bool proves = true;                      ///< false: nothing follows for its addresses

  /// Something of it has to be recorded.
  bool counts() const { return bounce.has_value(); }
};

/// What shows whose mail a report is about.
struct BounceProof {
  std::string pattern;   ///< send.bounce_address: then only its ids do; empty: the Message-ID does
  std::string mailto{};  ///< send.unsubscribe_mailto: a mail to one of its ids unsubscribes; empty: none
  std::string home;      ///< mailroom_home_name(): the database that ids are of
  crypto::KeyRing keys;
};

/// Judges the bytes of a mail. A mail to an id of ours counts, in whatever form it is.
Report judge_report(std::string_view bytes, const BounceProof& proof);

/// mailroom_home_name()
std::string home_name(db::Connection& connection);

/// Judges an event, which must come from its provider: whoever can make one can suppress an address.
Report judge_event(bounce::ReadEvent event, const BounceProof& proof);

/// The parts of a Message-ID of ours (make_message_id()); a token or a message has 0 if it names the other.
struct MailId {
  std::string queue{};
  std::string key{};
  std::int64_t token = 0;
  std::int64_t message = 0;
};

/// `text`: without angle brackets. nullopt for the Message-ID of somebody else.
std::optional<MailId> parse_mail_id(std::string_view text);

/// What became of one recipient of a report.
struct RecordedBounce {
  std::string kind{};    ///< bounce_kind_name(), or `unread` for a report in no form that is understood
  std::string reason{};  ///< bounce_reason_name()
  std::string reply{};   ///< status and words of the remote server
  bool is_new = false;   ///< false: the report was read before, and its mail was known then or is not yet
  std::string queue{};
  std::optional<std::int64_t> token{};  ///< nullopt: the report does not show whose mail it was
  std::string address{};
  bool suppressed = false;  ///< the address gets no more mails
  // Of a token, for traces.
  std::string traceparent{};    ///< empty for none
  std::int64_t created_at = 0;  ///< in seconds since 1970
  std::int64_t message = 0;     ///< that made it; 0 for none
};

/// Records the reports that count, in one transaction, in their order. `source`: where they were read. The
/// application is told, addresses are suppressed, and an outcome that was unknown is accepted then.
/// `suppress_after`: how many mails to an address may come back softly within a time; nullopt: any number.
std::vector<RecordedBounce> record_bounces(db::Connection& connection, const std::string& source,
                                           const std::vector<Report>& reports,
                                           const std::optional<config::Rate>& suppress_after);

}  // namespace mailroom::suppression
