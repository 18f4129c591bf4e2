// Emits chosen tokens again, each as a mail of its own, and says before who of them had one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/connection.hpp"
#include "queue/operation_author.hpp"
#include "replay/rewind.hpp"
#include "selection/selection.hpp"

namespace mailroom::replay {

/// The tokens to send again in one queue.
struct ResendRequest {
  std::string queue;
  selection::Selection selection{};  ///< without outcomes: those that they meant are its tokens
  selection::Selection asked{};      ///< as the operator typed it, for the record
  bool by_token = false;  ///< the operator named each token: one that a newer one replaced is sent, too
  std::chrono::seconds extension{};  ///< new lifetime of expired tokens from now on; 0 leaves them expired
  /// When `selection` was read, if outcomes chose its tokens: one that has another outcome since is not sent.
  std::optional<Moment> chosen_at{};
};

/// What a resend does with a token, or why it sends it not.
enum class ResendChoice : std::uint8_t {
  sent,
  waiting,  ///< above the cursor, in a gap or in a batch: it is emitted anyway
  expired,
  consumed,
  wrong_status,  ///< of its account
  replaced,      ///< its account has a newer token of the same action
  revoked,
  untaken,  ///< the queue does not take its action
};
constexpr std::size_t resend_choices = 8;

/// `wrong status`.
std::string_view resend_choice_text(ResendChoice choice);

/// A resend of the last hour.
struct ResentLately {
  std::int64_t tokens = 0;  ///< of those to be sent
  Moment at{};              ///< of the newest that had one of them
};

/// What a resend would do at this moment.
struct ResendPlan {
  std::string queue;
  std::array<std::int64_t, resend_choices> counts{};
  SentBefore before{};               ///< of those to be sent
  std::int64_t revived = 0;          ///< of those to be sent and those that wait: they get a new expiry
  std::vector<std::int64_t> sent{};  ///< those to be sent, ascending
  ResentLately lately{};             ///< whom somebody else, or the same command, sent a mail again just now

  std::int64_t count(ResendChoice choice) const { return counts[static_cast<std::size_t>(choice)]; }
};

/// The server's clock, for ResendRequest::chosen_at: an outcome may change within the second.
Moment time_of_choice(db::Connection& connection);

/// Reads what `request` would do, and changes nothing. Throws DatabaseError MR001 for an unknown queue.
ResendPlan plan_resend(db::Connection& connection, const ResendRequest& request);

/// Carries out all `requests`, of different queues, in one transaction under the locks of their queues,
/// records each, and notifies `channel`. The tokens are judged again: of two resends at once, the second
/// finds that they wait. Throws Error(declined) if there are now more than `max` of them. Returns how many
/// are emitted.
std::int64_t carry_out_resend(db::Connection& connection, const std::vector<ResendRequest>& requests,
                              std::int64_t max, const queue::OperationAuthor& author,
                              const std::string& channel);

}  // namespace mailroom::replay
