// send --to, which tries relay, templates and sender with one mail.
#pragma once

#include <optional>
#include <string>

#include "cmd/terminal/context.hpp"
#include "mail/mail_action.hpp"

namespace mailroom {

/// One mail for trial.
struct SendTrial {
  std::string to;                      ///< the recipient
  std::optional<std::string> account;  ///< whose email and login the mail names; nullopt for an example
  MailAction action = MailAction::activation;
};

/// Sends the mail, and prints the relay's answer. Claims no token. Throws Error(failed) unless a relay
/// accepts it, Error(usage) for an address that cannot be mailed.
ExitCode run_send_trial(const SendTrial& trial, Context& context);

}  // namespace mailroom
