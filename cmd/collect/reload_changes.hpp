// What a reload takes: the settings that have another value, and the files that have another content.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "consumer/collector.hpp"
#include "crypto/hmac.hpp"

namespace mailroom::cmd {

/// The digests of the files that settings name, by what they hold (`templates`, `password`) and by file. The
/// signing keys are told by their fingerprints instead.
using FileContents = std::map<std::string, std::map<std::string, crypto::Digest>>;

/// Reads the files; one that cannot be read, or is not a regular file, has no digest: whoever needs it says
/// so. `mails`: of mailroom send. Throws Error(configuration) as read_template_files() does.
FileContents read_contents(const config::Settings& settings, bool mails);

/// The settings whose values differ.
std::vector<consumer::SettingChange> changes_between(const config::Settings& before,
                                                     const config::Settings& after);
/// `templates: 2 changed, and receipt.de.txt is gone`, `password: changed`, for the kinds of files that
/// differ.
std::vector<consumer::SettingChange> changes_between(const FileContents& before, const FileContents& after);

}  // namespace mailroom::cmd
