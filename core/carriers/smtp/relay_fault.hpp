// Tells what is wrong from the code and the words of a relay that does not take mail.
#pragma once

#include <string_view>

#include "carriers/smtp/exchange.hpp"
#include "carriers/smtp/relay.hpp"

namespace mailroom {

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
