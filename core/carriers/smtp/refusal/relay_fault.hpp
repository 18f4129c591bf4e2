// What is wrong with a relay, or with the login there, by its codes and words.
#pragma once

#include <string>
#include <string_view>

#include "carriers/smtp/dialogue/steps.hpp"

namespace mailroom::smtp {

/// Why a relay takes no mail, as a check finds.
enum class RelayFault {
  none,
  unreachable,   ///< no connection: the name, the port or the network
  silent,        ///< a connection, and no greeting
  no_smtp,       ///< what greets speaks another protocol
  no_starttls,   ///< it offers no STARTTLS or refuses it, and TLS is required
  tls,           ///< the TLS handshake fails
  certificate,   ///< its certificate is not trusted, has expired, or is for another name
  no_auth,       ///< no AUTH, and a user is configured
  no_mechanism,  ///< it offers no mechanism that fits, or there is no access token
  login,         ///< AUTH is refused
  wants_login,   ///< no user is configured, and it wants one
  wants_tls,     ///< it wants TLS of a connection without
  busy,          ///< it takes no mail now, as it says
  no_smtputf8,   ///< it does not offer SMTPUTF8, which the sender needs
  sender,        ///< it refuses the sender
  refused,       ///< it refuses another command, or does not answer it
};

/// What a check found out.
struct RelayCheck {
  RelayFault fault = RelayFault::none;
  int code = 0;       ///< of the relay's last reply; 0 if there was none
  std::string reply;  ///< its text, or why there was none: as Answer::reply
  bool encrypted = false;
  std::string hello_name;  ///< in EHLO
  std::string greeting{};  ///< of the relay
};

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

/// `code` and `text` are those of the refusal.
LoginFault fault_of_login(int code, std::string_view text);

}  // namespace mailroom::smtp
