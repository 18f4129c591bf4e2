// Ends tokens before they expire by themselves, as after the leak of a key, and records it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "queue/operation_author.hpp"
#include "selection/selection.hpp"

namespace mailroom::replay {

/// The tokens to end: those that `selection` finds in any of `queues`.
struct RevocationRequest {
  selection::Selection selection;  ///< without outcomes: those that they meant are its tokens
  selection::Selection asked{};    ///< as the operator typed it, for the record
  std::vector<std::string> queues;
  bool only_taken = false;          ///< and whose action one of `queues` takes
  std::vector<std::string> keys{};  ///< signed with one of these, by fingerprint; empty for any
};

/// What a revocation would do at this moment.
struct RevocationPlan {
  std::int64_t live = 0;               ///< would end
  std::int64_t accounts = 0;           ///< of these
  std::int64_t waiting = 0;            ///< of `live`: no batch has them yet, and none will
  std::int64_t leased = 0;             ///< of `live`: in a batch, so their mails may still leave
  std::int64_t consumed = 0;           ///< were used before
  std::int64_t expired = 0;            ///< have ended before
  std::vector<std::int64_t> newest{};  ///< of `live`, at most 11, newest first
};

RevocationPlan plan_revocation(db::Connection& connection, const RevocationRequest& request);

/// Lets the tokens that are neither consumed nor expired expire now, in a transaction of its own, and records
/// it. No claim emits them from then on, no redemption takes them, and no --extend revives them. Returns how
/// many.
std::int64_t carry_out_revocation(db::Connection& connection, const RevocationRequest& request,
                                  const queue::OperationAuthor& author);

}  // namespace mailroom::replay
