// The addresses that get no more mails, for operators.
//
// It lists and changes them. It does not decide which bounce suppresses an address (core/bounce/judgement and
// migrations/functions/bounces.sql), and stops no mail itself: migrations/functions/fetch.sql tells the
// sender of each token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::suppression {

/// An address that gets no mails, but for actions that are security mail.
struct Suppression {
  std::string address{};
  std::string topic{};   ///< of which it gets no mails; empty: it gets none at all
  std::string kind{};    ///< `bounce`, `complaint`, `unsubscribed` or `operator`
  std::string reason{};  ///< that of the bounce, or an operator's words
  Moment added_at{};
  std::string added_by{};
  std::optional<std::int64_t> token{};  ///< whose mail bounced, if that is on record
};

/// Ordered by the time at which they were added, newest first, at most `limit`. `addresses`: only these; none
/// for all. `topic`: only of this one; nullopt for all, empty for what is of none.
std::vector<Suppression> list_suppressions(db::Connection& connection,
                                           const std::vector<std::string>& addresses, std::int64_t limit,
                                           const std::optional<std::string>& topic = std::nullopt);

/// The form under which an address is suppressed: canonical_text(). Throws Error(usage) for what is no
/// address.
std::string suppressed_form(const std::string& typed);

/// Suppresses addresses, which suppressed_form() has made, for the reason of the author, and records that.
/// Returns how many were not suppressed before. `topic`: for this one alone; empty for all mails. Throws
/// Error(usage) for a topic that there is not.
std::int64_t add_suppressions(db::Connection& connection, const std::vector<std::string>& addresses,
                              const std::string& topic, const queue::OperationAuthor& author);

/// Lets addresses get mails again, or those of a topic, and records that. Returns how many were suppressed
/// so.
std::int64_t remove_suppressions(db::Connection& connection, const std::vector<std::string>& addresses,
                                 const std::string& topic, const queue::OperationAuthor& author);

}  // namespace mailroom::suppression
