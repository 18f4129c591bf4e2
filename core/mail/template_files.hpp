// The parts of a mail, the built-in template of each, and the files of an operator who has written some.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// What a mail is about.
enum class MailAction { activation, recovery };

constexpr std::array<MailAction, 2> all_mail_actions{MailAction::activation, MailAction::recovery};

/// `activation` or `recovery`: as templates, links and the names of template files have it.
constexpr std::string_view mail_action_name(MailAction action) {
  return action == MailAction::activation ? "activation" : "recovery";
}

/// A part of a mail, each a template of its own.
enum class MailPart { subject, text, html };

constexpr std::array<MailPart, 3> all_mail_parts{MailPart::subject, MailPart::text, MailPart::html};

/// The template of one part, and the name of the file that replaces it.
struct BuiltinTemplate {
  MailAction action;
  MailPart part;
  std::string_view file;
  std::string_view text;
};

/// One for each part of each action.
const std::array<BuiltinTemplate, 6>& builtin_templates();

const BuiltinTemplate& builtin_template(MailAction action, MailPart part);

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
