// Reads a mail of ours back, as Resend takes no MIME: its API wants the parts by name.
#pragma once

#include <string>
#include <string_view>

#include "delivery/carrier.hpp"

namespace mailroom {

/// A mail as Resend's API takes it.
struct ResendMail {
  std::string json;        ///< an object, without tags: `from`, `to`, `subject`, `text` and so on
  std::string message_id;  ///< of its header, without angle brackets; empty without one
};

/// `bytes`: header and body with CRLF line ends, as MessageBuilder makes them. It goes to the recipient of
/// the envelope alone: Resend sends a mail to whomever its fields name. `tags`: JSON of an array, or empty.
/// The same mail has the same JSON. Throws Error(failed) for what is no mail.
ResendMail read_resend_mail(std::string_view bytes, const Envelope& envelope, std::string_view tags);

}  // namespace mailroom
