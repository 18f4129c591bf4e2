#include <fmt/format.h>

#include "cmd/reference/man_pages.hpp"
#include "cmd/reference/page_parts.hpp"

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

std::string_view section_of(std::string_view key) {
  return key.substr(0, key.find('.'));
}

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const auto name : names)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

void add_key(ManPage& page, const KeyEntry& key) {
  page.item(roff_bold(key.key.substr(section_of(key.key).size() + 1)), roff_escaped(key.meaning));
  std::string facts;
  const auto add_fact = [&facts](const std::string& label, const std::string& fact) {
    facts += fmt::format("{}{}: {}", facts.empty() ? "" : "; ", label, fact);
  };
  if (!key.choices.empty()) add_fact("one of", roff_escaped(listed(key.choices)));
  if (key.is_list) add_fact("a list", "separated by commas in the variable");
  if (!key.default_text.empty()) add_fact("default", roff_escaped(key.default_text));
  if (!key.environment.empty()) add_fact("variable", roff_bold(key.environment));
  if (!facts.empty()) page.item_goes_on(facts);
}

void add_keys(ManPage& page) {
  page.section("KEYS");
  std::string_view section;
  for (const auto& key : key_table()) {
    if (section_of(key.key) != section) {
      section = section_of(key.key);
      page.subsection(section);
    }
    add_key(page, key);
  }
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
  ManPage page("mailroom.yaml", 5, MAILROOM_VERSION);
  add_name(page, "mailroom.yaml", "configuration of mailroom");
  page.section("DESCRIPTION");
  page.paragraphs(description);
  add_keys(page);
  page.section("EXAMPLES");
  page.verbatim(example_configuration);
  page.section("FILES");
  page.line(roff_bold("./mailroom.yaml"));
  page.line_break();
  page.line(roff_bold("/etc/mailroom/mailroom.yaml"));
  page.section("SEE ALSO");
  page.line(page_name("mailroom", 1) + ", " + page_name("mailroom-config", 1));
  return page.text();
}

}  // namespace mailroom
