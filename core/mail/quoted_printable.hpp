// The transfer encoding of the bodies of a mail.
#pragma once

#include <string>
#include <string_view>

namespace mailroom {

/// Appends `text` in quoted-printable (RFC 2045, section 6.7): printable ASCII, lines of at most 76 columns
/// that end in CRLF, the last one too. LF and CRLF of the text are line ends; a CR alone is encoded.
///
/// A dot at the start of a line is encoded, so that a relay that handles it wrongly removes nothing, and so
/// is the F of `From ` there, which a mailbox file would change. An equals sign is always followed by two
/// hexadecimal digits or a line end, so no line of the result contains `=_`.
void append_quoted_printable(std::string& out, std::string_view text);

}  // namespace mailroom
