// The SASL mechanisms with which mailroom logs in to a relay.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::smtp {

/// How a user logs in to a relay (RFC 4954).
enum class AuthMechanism { plain, login, cram_md5, oauthbearer, xoauth2 };

/// As in EHLO's reply: `PLAIN`.
std::string_view auth_mechanism_name(AuthMechanism mechanism);

/// What a user proves to be that user with.
struct Credentials {
  std::string user;
  std::string secret;     ///< a password, or an access token
  bool is_token = false;  ///< an access token of OAuth 2
  std::string host;       ///< of the relay, for OAUTHBEARER
  int port = 0;
};

/// The mechanisms that fit the credentials and are among those offered (`PLAIN LOGIN GSSAPI`), in the order
/// in which to try them: a relay may offer what this user has no secret for, such as CRAM-MD5 where it keeps
/// hashes of passwords, so those come first that work with any.
std::vector<AuthMechanism> mechanisms_to_try(std::string_view offered, bool with_token);

/// Why no login can begin: what is offered, and what mailroom knows.
std::string no_mechanism_text(std::string_view offered, bool with_token);

/// The command that begins a login, without its line end: with the first answer where there is one.
std::string auth_command(AuthMechanism mechanism, const Credentials& credentials);

/// The answer to the challenge number `round`, from 0, without its line end; nullopt if the mechanism has no
/// more answers.
std::optional<std::string> auth_answer(AuthMechanism mechanism, int round, std::string_view challenge,
                                       const Credentials& credentials);

}  // namespace mailroom::smtp
