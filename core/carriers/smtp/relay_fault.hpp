// Reads a relay's codes and words: what is wrong, and whether it asks for fewer mails or fewer at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carriers/smtp/answer.hpp"
#include "carriers/smtp/relay.hpp"

namespace mailroom {

/// What a relay asks of its client, beside what becomes of the mail.
enum class RelayWish { none, lower_rate, fewer_at_once };

/// The wish in a reply of `code` to `step`, whose own words are `words` (own_words()). 454 is one for a lower
/// rate at the end of a message; elsewhere it has other meanings, as `454 4.7.1 Relay access denied`. Other
/// temporary replies are if they have its words, and are not about the recipient, as are permanent ones that
/// name a rate. 432 is a wish for fewer mails at once, as are the words of too many connections. A quota of
/// everyone is none: no rate that mailroom could choose keeps to it. Before MAIL only fewer connections can
/// be asked for.
RelayWish relay_wish(SmtpStep step, int code, std::string_view words,
                     RefusalSubject about = RefusalSubject::unclear);

/// True if `CODE TEXT` contains one of `patterns`, ignoring case: then the reply is a wish for a lower rate.
bool is_configured_wish(int code, std::string_view text, const std::vector<std::string>& patterns);

/// Why a relay refuses a command that is not AUTH.
RelayFault fault_of_refusal(SmtpStep step, int code, std::string_view text);

/// Why a relay refuses AUTH.
enum class LoginFault {
  password,      ///< a wrong user, password or token
  unsure,        ///< the same, or the account's setting at the provider
  app_password,  ///< it wants a password of its own for programs
  sign_in,       ///< its owner must sign in at the provider
  switched_off,  ///< the provider lets this account use no SMTP, or no password
  mechanism,     ///< the mechanism is not the right one for this user
  encryption,    ///< it sees no TLS, or none that it takes
  account,       ///< a quota, or the state of the account
  host,          ///< this host's address
  crowded,       ///< too many connections
  later,         ///< any other temporary refusal
};

LoginFault fault_of_login(int code, std::string_view text);

}  // namespace mailroom
