// The bytes of a mail's commands and of its message, and the last check of what goes into them.
#pragma once

#include <string>
#include <string_view>

#include "carriers/smtp/dialogue/exchange.hpp"
#include "delivery/carrier.hpp"

namespace mailroom::smtp {

/// The last check before an address becomes part of an SMTP command: `local@domain`, at most 254 bytes,
/// without control characters and angle brackets, and without blanks, quotes and backslashes except in a
/// quoted local part. Only with `allow_utf8` may the local part be other than ASCII; the domain is always
/// ASCII.
bool is_envelope_address(std::string_view address, bool allow_utf8);

/// True if both addresses pass is_envelope_address(), or the sender is empty.
bool has_safe_addresses(const delivery::Envelope& mail);

/// The last check before the data: true if the line ends are CRLF and there is no NUL, so that no relay can
/// see commands in the message.
bool is_transmittable(std::string_view message);

/// The command of MAIL, RCPT or DATA for `mail`, with its line end. `with_id`: the relay offers DSN.
std::string request_of(SmtpStep step, const delivery::Envelope& mail, bool with_id);

/// `message` with `header`, a line without its end, before it, unless it has one of that name.
std::string with_header(const std::string& header, std::string_view message);

/// `message` as it goes over the wire after DATA, with its end.
std::string stuffed(std::string_view message);

/// `message` as the one chunk of BDAT, with the command.
std::string as_chunk(std::string_view message);

}  // namespace mailroom::smtp
