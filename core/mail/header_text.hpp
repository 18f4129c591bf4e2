// Writes the header lines of a message: subject, mailboxes, date, and the operator's own.
#pragma once

#include <string>
#include <string_view>

#include "base/moment.hpp"
#include "mail/address.hpp"

namespace mailroom {

// Headers as RFC 5322 and RFC 2047 want them: printable ASCII, folded at 76 columns. The values are printable
// UTF-8 (is_printable()); with anything else, such as a line end, the result is not a header.

/// Appends `Name: value` and CRLF for free text, such as a subject. Text that is not plain ASCII, or could
/// not be folded, becomes encoded words of at most 75 columns.
void append_text_header(std::string& out, std::string_view name, std::string_view value);

/// Appends `Name: value` and CRLF for a value in ASCII whose syntax is unknown: folded at blanks where
/// possible, otherwise as it is.
void append_raw_header(std::string& out, std::string_view name, std::string_view value);

/// Appends `Name: display name <local@domain>` and CRLF. A non-ASCII local part is written as it is.
void append_mailbox_header(std::string& out, std::string_view name, const Mailbox& mailbox);

/// `Fri, 21 Nov 2026 09:30:15 +0000` . A time outside the years 1970 to 9999 becomes
/// the nearest one within.
std::string date_header_text(Moment moment);

}  // namespace mailroom
