// From what a notification says of one recipient to a reason and a kind.
//
// It does not parse mails (reader) and does not record: whether an address gets more mails is decided by
// migrations/functions/bounces.sql.
#pragma once

#include <string_view>

#include "bounce/bounce_reason.hpp"

namespace mailroom::bounce {

/// What is known of one recipient.
struct BounceEvidence {
  std::string_view action;       ///< of RFC 3464, in lower case; may be empty
  std::string_view status;       ///< enhanced status, or empty
  int code = 0;                  ///< reply code, or 0
  std::string_view diagnostic;   ///< words of the remote server
  std::string_view text;         ///< words for people about this recipient
  bool is_after_data = false;    ///< the server had taken the recipient, and refused the content
  bool is_at_recipient = false;  ///< it is said to have refused the recipient
};

struct BounceJudgement {
  BounceReason reason = BounceReason::undetermined;
  BounceKind kind = BounceKind::undetermined;
};

/// Clear words of the server decide; then the status, or the text for people if the server said nothing; then
/// vague words, a vague status, and the reply code. Hard only if the reason says that the address does not
/// exist or never takes mail, and the refusal is permanent.
BounceJudgement judge_bounce(const BounceEvidence& evidence);

}  // namespace mailroom::bounce
