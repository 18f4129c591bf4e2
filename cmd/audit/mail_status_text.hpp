#pragma once

#include <string>

#include "audit/mail_status.hpp"

namespace mailroom {

/// What became of a mail, as a part of a sentence: `mailed once, 2026-11-22T20:59:55Z, accepted by
/// relay.example:25: 250 2.0.0 Ok: queued as 4Z1`.
std::string mail_status_text(const MailStatus& status, Moment now);

}  // namespace mailroom
