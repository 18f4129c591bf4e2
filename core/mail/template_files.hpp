// The operator's template files, as found in the directory of send.templates.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace mailroom {

constexpr std::size_t largest_template = 256 * 1024;  ///< bytes

/// The template files of a directory, read but not parsed.
struct TemplateFiles {
  std::string directory;                     ///< as configured; empty for none
  std::map<std::string, std::string> texts;  ///< by file name: the six known names, and all of `*.mustache`
  std::vector<std::string> ignored;          ///< other files, except hidden ones and backups that end in ~
};

/// Reads `directory`. Throws Error(configuration) if the directory or a template file cannot be read, or if a
/// file is larger than `largest_template` or not a regular file.
TemplateFiles read_template_files(const std::string& directory);

/// True for `activation.subject`, `recovery.html` and their kind, the files that are templates of a part of a
/// mail.
bool is_template_file(const std::string& name);

}  // namespace mailroom
