// Reads a mailbox on another host: each mail is filed there after it is on record here.
#pragma once

#include <string>

#include "cmd/bounce/bounce_reader.hpp"
#include "mailbox/mailbox.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::cmd {

/// Which mailbox, and what becomes of its mails; as the options say it.
struct MailboxSource {
  std::string imap{};  ///< a URL
  std::string pop3{};
  mailbox::FilingRules rules{};

  bool any() const { return !imap.empty() || !pop3.empty(); }
  /// Host and folder, without the user: for the record.
  std::string name() const;
  /// Throws Error(configuration), and Error(usage) for rules that the protocol does not have.
  std::unique_ptr<mailbox::Mailbox> open(const config::Settings& settings,
                                         const process::StopSignal& stop) const;
};

/// Reads until a stop is requested, or with `once` until nothing is left; then it throws what the mailbox
/// throws. Throws ConnectionLost: then it is called again, with another reader.
ExitCode read_mailbox(mailbox::Mailbox& mailbox, const MailboxSource& source, bool once, BounceReader& reader,
                      process::StopSignal& stop, Context& context);

}  // namespace mailroom::cmd
