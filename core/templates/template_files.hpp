// The files of templates: their names with part and locale, the built-in ones, and those of an operator.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::templates {

/// A part of a mail, each a template of its own; or what templates include.
enum class MailPart { subject, text, html, partial };

/// The parts that a mail has.
constexpr std::array<MailPart, 3> all_mail_parts{MailPart::subject, MailPart::text, MailPart::html};

/// `.subject`, `.txt`, `.html` or `.mustache`.
std::string_view suffix_of(MailPart part);

/// What the name of a file says: `receipt.de-AT.txt` is the text of the template `receipt` for `de-at`.
struct TemplateFileName {
  std::string name;    ///< of the template or partial
  std::string locale;  ///< in lower case; empty for all others
  MailPart part = MailPart::text;
};

/// Reads the name of a file; nullopt for one that is no template. The name of a template has letters, digits,
/// hyphens and underscores, that of a partial may have others.
std::optional<TemplateFileName> parse_template_file(std::string_view file);

/// The same for a file of example data, `receipt.example.json` or `receipt.de.example.json`, with which a
/// preview shows a template.
std::optional<TemplateFileName> parse_example_file(std::string_view file);

/// The locales whose files suit a reader's, the best first, in lower case: `de-at`, `de`, and an empty one
/// for the file without. Accepts `de-AT`, `de_AT` and `de_AT.UTF-8`. Of what is no locale, the last alone.
std::vector<std::string> locale_chain(std::string_view locale);

/// The template of one part, and the name of the file that replaces it.
struct BuiltinTemplate {
  std::string_view name;
  MailPart part;
  std::string_view file;
  std::string_view text;
  bool shows_code;
};

/// One for each part of each built-in template.
const std::array<BuiltinTemplate, 6>& builtin_templates();

/// Null if there is none.
const BuiltinTemplate* find_builtin(std::string_view name, MailPart part);

/// The template of which a trial is made unless another is named.
constexpr std::string_view default_template = "activation";

constexpr std::size_t largest_template = 256 * 1024;  ///< bytes

/// The file of each locale.
using FilesByLocale = std::map<std::string, std::string>;
using TemplateNames = std::map<MailPart, std::map<std::string, FilesByLocale, std::less<>>>;

/// The template files of a directory, read but not parsed.
struct TemplateFiles {
  std::string directory;                     ///< as configured; empty for none
  std::map<std::string, std::string> texts;  ///< by file name
  std::vector<std::string> ignored;          ///< other files, except hidden ones and backups that end in ~

  /// The path of one of them.
  std::string path_of(const std::string& file) const;

  /// Their names by part, name and locale. Throws Error(configuration) for two files of the same.
  TemplateNames names() const;
};

/// Reads `directory`. Throws Error(configuration) if the directory or a template file cannot be read, or if a
/// file is larger than `largest_template` or not a regular file.
TemplateFiles read_template_files(const std::string& directory);

/// Reads one of these files. Throws Error(configuration) likewise.
std::string read_template_file(const std::string& path);

/// Reads a file of example data, which it does not parse. Throws Error(configuration) as for a template.
std::string read_data_file(const std::string& path);

}  // namespace mailroom::templates
