// The directory where mails wait while no service takes them: a file for each, of the user who mails.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "sendmail/mail_text.hpp"

namespace mailroom::sendmail {

struct SpooledFile {
  std::string name{};
  uid_t owner = 0;
};

/// Returns when the mail is on disk. Throws Error(failed).
void write_to_spool(const std::string& directory, const Mail& mail, const std::string& random);

/// The mails that wait, the oldest first; files that others have begun are none. Throws Error(failed) if it
/// cannot be read.
std::vector<SpooledFile> waiting_in(const std::string& directory);

/// Nullopt for what write_to_spool() has not written, or a file with another name too: its owner may not have
/// made it. Throws Error(failed) if it cannot be read.
std::optional<Mail> read_from_spool(const std::string& directory, const SpooledFile& file);

void remove_from_spool(const std::string& directory, const SpooledFile& file);

/// Gives a mail that was refused another name, with which it waits no more, and returns its path.
std::string keep_refused(const std::string& directory, const SpooledFile& file);

}  // namespace mailroom::sendmail
