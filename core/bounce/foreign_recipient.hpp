// Bounces in no standard form, which another program reads: what it says of a recipient, and what that means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bounce/bounce.hpp"

namespace mailroom {

/// What another program read of one recipient.
struct ForeignRecipient {
  std::string address;
  std::string action;      ///< of RFC 3464, or empty
  std::string status;      ///< enhanced status, or empty
  std::string diagnostic;  ///< words of the remote server
  std::string reason;      ///< as Sisimai names it: `userunknown`
  std::string command;     ///< of SMTP, that was refused: `RCPT`; or empty
};

/// Reads bounces that read_bounce() recognises and does not understand.
class ForeignReader {
 public:
  virtual ~ForeignReader() = default;
  /// The recipients of a mail; none if it does not understand it either, or takes too long.
  virtual std::vector<ForeignRecipient> read(std::string_view bytes) = 0;
};

/// Judges by the words and the status, as of any report; by the reason only if these say nothing. Never hard
/// if that reason is another one of those that are not.
BounceRecipient judge_foreign(const ForeignRecipient& foreign);

}  // namespace mailroom
