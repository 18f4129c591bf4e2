// Logs in to a relay over its open connection.
#pragma once

#include <string>
#include <vector>

#include "carriers/smtp/dialogue/connection.hpp"
#include "carriers/smtp/dialogue/dialogue.hpp"
#include "carriers/smtp/login/mechanisms.hpp"
#include "carriers/smtp/relay/relay.hpp"

namespace mailroom::smtp {

/// The login of a connection, which begins after EHLO. The dialogue says how it ended.
class SmtpLogin {
 public:
  /// The arguments must outlive this.
  SmtpLogin(const RelayUrl& url, const RelayOptions& options, Dialogue& dialogue,
            RelayConnection& connection);

  /// Logs in where a user is configured and AUTH is offered.
  void log_in();
  /// True if this address of the relay lets no user log in, and another address of its name may.
  bool is_shut_out() const;
  /// Why no login could begin; empty if one could.
  const std::string& problem() const { return problem_; }
  /// What no record may contain.
  const std::vector<std::string>& secrets() const { return secrets_; }

 private:
  bool try_mechanisms(const Credentials& credentials);
  bool authenticate(AuthMechanism mechanism, const Credentials& credentials);

  const RelayUrl& url_;
  const RelayOptions& options_;
  Dialogue& dialogue_;
  RelayConnection& connection_;
  std::vector<std::string> secrets_;
  std::string problem_;
};

}  // namespace mailroom::smtp
