#include <fmt/format.h>

#include "cmd/reference/man_pages.hpp"
#include "cmd/reference/scd.hpp"
#include "cmd/reference/words.hpp"

namespace mailroom {
namespace {

constexpr const char* description =
    "The file is YAML with a section for each group of keys. mailroom reads the file that --config names, "
    "else the one that MAILROOM_CONFIG names, else mailroom.yaml in the working directory, else "
    "/etc/mailroom/mailroom.yaml; the last two may be absent.\n\n"
    "A command-line option overrides an environment variable, which overrides the file, which overrides the "
    "default. An unknown key or an invalid value is an error, reported with line and column. mailroom config "
    "show prints every effective value with its origin, and mailroom config check shows whether a collector "
    "could start.\n\n"
    "A running collector reloads the file on SIGHUP.\n\n"
    "A duration is one or more numbers with units: 250ms, 5s, 4m30s, 1d; a bare number is milliseconds. A "
    "relative path starts at the directory of the file.";

std::string facts_of(const KeyEntry& key) {
  std::vector<std::string> facts;
  const auto choices = fmt::format("{}", fmt::join(key.choices, ", "));
  if (!choices.empty()) facts.push_back("one of: " + scd_escaped(choices));
  if (key.is_list) facts.emplace_back("a list: separated by commas in the variable");
  if (!key.default_text.empty()) facts.push_back("default: " + scd_escaped(key.default_text));
  if (!key.environment.empty()) facts.push_back("variable: " + scd_bold(key.environment));
  return joined(facts, "; ");
}

std::string keys() {
  std::string text;
  std::string_view section;
  for (const auto& key : key_table()) {
    const auto dot = key.key.find('.');
    if (key.key.substr(0, dot) != section) {
      section = key.key.substr(0, dot);
      text += fmt::format("## {}\n\n", section);
    }
    text += scd_item(scd_bold(key.key.substr(dot + 1)), {scd_escaped(key.meaning), facts_of(key)});
  }
  return text;
}

}  // namespace

const char* const example_configuration =
    "database:\n"
    "  url: host=db.example dbname=accounts user=mailroom\n"
    "signing:\n"
    "  key_file: /etc/mailroom/signing.key\n"
    "  previous_key_files: [/etc/mailroom/signing.key.old]\n"
    "collect:\n"
    "  batch_limit: 100\n"
    "  batch_timeout: 500ms\n"
    "log:\n"
    "  format: logfmt\n";

std::string render_configuration_page() {
  return scd_head("mailroom.yaml", 5, "configuration of mailroom") + scd_heading("DESCRIPTION") +
         scd_paragraphs(description) + scd_heading("KEYS") + keys() + scd_heading("EXAMPLES") +
         scd_verbatim(example_configuration) + scd_heading("FILES") +
         "*./mailroom.yaml* ++\n*/etc/mailroom/mailroom.yaml*\n\n" + scd_heading("SEE ALSO") +
         "*mailroom*(1), *mailroom-config*(1)\n";
}

}  // namespace mailroom
