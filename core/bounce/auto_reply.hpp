// Signs in the headers of a mail: that a program sent it, and of what kind.
#pragma once

#include "bounce/mail_parts.hpp"

namespace mailroom {

/// True for a notification of failure, whatever its form: its sender and its subject say so.
bool is_bounce_by_headers(const MailParts& mail);

/// True if a program answered a mail (RFC 3834), as one does for those who are on holiday.
bool is_auto_reply(const MailParts& mail);

}  // namespace mailroom
