// Whether the relay that was named takes mails.
#pragma once

#include <string>

namespace mailroom::cmd {

/// True if a relay of SMTP names a user, who has a password. Throws Error(configuration) for a relay that is
/// malformed.
bool names_user(const std::string& relay);

/// Connects to each relay of `relay`, as no user and for no sender. Throws Error for one that cannot be used.
void try_relay(const std::string& relay);

/// A login, and the sender of the mails.
struct RelayLogin {
  std::string from;
  std::string password{};       ///< of the relay's user; empty: `password_file` has it, or there is no user
  std::string password_file{};  ///< empty: none
};

/// Connects to each relay of `relay`, logs in and names the sender. Throws Error as try_relay().
void try_relay(const std::string& relay, const RelayLogin& login);

}  // namespace mailroom::cmd
