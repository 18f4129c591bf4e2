// Whether a relay asks for fewer mails, or for fewer at once, by its codes and words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carriers/smtp/dialogue/steps.hpp"
#include "delivery/refusal_memory.hpp"

namespace mailroom::smtp {

/// What a relay asks of its client, beside what becomes of the mail.
enum class RelayWish { none, lower_rate, fewer_at_once };

/// The wish in a reply of `code` to `step`, whose own words are `words` (own_words()). 454 is one for a lower
/// rate at the end of a message; elsewhere it has other meanings, as `454 4.7.1 Relay access denied`. Other
/// temporary replies are if they have its words, and are not about the recipient, as are permanent ones that
/// name a rate. 432 is a wish for fewer mails at once, as are the words of too many connections. A quota of
/// everyone is none: no rate that mailroom could choose keeps to it. Before MAIL only fewer connections can
/// be asked for.
RelayWish relay_wish(SmtpStep step, int code, std::string_view words,
                     delivery::RefusalSubject about = delivery::RefusalSubject::unclear);

/// True if `CODE TEXT` contains one of `patterns`, ignoring case: then the reply is a wish for a lower rate.
bool is_configured_wish(int code, std::string_view text, const std::vector<std::string>& patterns);

}  // namespace mailroom::smtp
