// Recognises that a relay asks for fewer mails, or for fewer at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "smtp/exchange.hpp"

namespace mailroom {

/// What a relay asks of its client, beside what becomes of the mail.
enum class RelayWish { none, lower_rate, fewer_at_once };

/// The wish in a reply of `code` to `step`. 454 is one for a lower rate at the end of a message; elsewhere it
/// has other meanings, as `454 4.7.1 Relay access denied`. Other temporary replies are if they have its
/// words, and are not about the recipient. So is every reply of which `CODE TEXT` contains one of `patterns`,
/// ignoring case. 432 is a wish for fewer mails at once, as are the words of too many connections. A quota of
/// everyone is none: no rate that mailroom could choose keeps to it.
RelayWish relay_wish(SmtpStep step, int code, std::string_view text, const std::vector<std::string>& patterns,
                     RefusalSubject about = RefusalSubject::unclear);

}  // namespace mailroom
