// Writes mailroom(1), a page for each command, and mailroom.yaml(5), for scdoc.

#include <cctype>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cmd/reference/generated_files.hpp"
#include "cmd/reference/scd.hpp"

namespace mailroom::cmd {
namespace {

constexpr const char* file_text =
    "The file is YAML with a section for each group of keys. mailroom reads the file that --config names, "
    "else the one that MAILROOM_CONFIG names, else mailroom.yaml in the working directory, else "
    "/etc/mailroom/mailroom.yaml; the last two may be absent.\n\n"
    "A command-line option overrides an environment variable, which overrides the file, which overrides the "
    "default. An unknown key or an invalid value is an error, reported with line and column. mailroom config "
    "show prints every effective value with its origin, and mailroom config check shows whether a collector "
    "could start.\n\n"
    "A running collector reloads the file on SIGHUP.\n\n"
    "A duration is one or more numbers with units: 250ms, 5s, 4m30s, 1d; a bare number is milliseconds. A "
    "range is two values with two dots between them, without white space: 10..500, 50ms..5s. A relative path "
    "starts at the directory of the file.";

constexpr const char* configuration_text =
    R"(A command-line option overrides an environment variable, which overrides the configuration file, which
overrides the default. *mailroom config show* shows the origin of each value. *mailroom.yaml*(5) describes the file. Its
keys are:

)";

constexpr const char* environment_text =
    R"(# ENVIRONMENT

In addition to the variables in CONFIGURATION (an empty variable counts as unset):

*MAILROOM\_CONFIG*
	the configuration file, unless *--config* names one

*NO\_COLOR*
	if not empty, output is not coloured unless *--color always* is given

*PGHOST*, *PGDATABASE*, *PGUSER*, ...
	libpq's variables, for settings that the connection string omits

)";

constexpr const char* files_text =
    R"(# FILES

*./mailroom.yaml*, */etc/mailroom/mailroom.yaml*
	the configuration file, if neither *--config* nor *MAILROOM\_CONFIG* names one: the first of these that exists

)";

constexpr const char* global_options_text =
    R"(# GLOBAL OPTIONS

*mailroom*(1) describes the options of every command, such as *--config* and *--output*, the configuration, environment
and files, and what to do after each exit status.

)";

/// The first sentence of the help, in the form of a NAME section: no initial capital, no full stop.
std::string summary_of_program(const CommandReference& program) {
  auto text = program.summary;
  if (text.ends_with('.')) text.pop_back();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string synopsis(const CommandReference& command) {
  std::vector<std::string> lines;
  for (const auto& place : places_of(command)) {
    if (place.command->needs_command) continue;
    lines.push_back(scd_bold(place.command->path) + " [_OPTION_]...");
    for (const auto& operand : place.command->operands) {
      const auto name = scd_italic(operand.value.name) + (operand.repeated ? "..." : "");
      lines.back() += operand.required ? " " + name : " [" + name + "]";
    }
  }
  return scd_heading("SYNOPSIS") + joined(lines, " ++\n") + "\n\n";
}

std::string description_and_examples(const CommandReference& command) {
  auto text = scd_heading("DESCRIPTION") + scd_paragraphs(command.description) + scd_heading("EXAMPLES");
  for (const auto& [example, purpose] : command.examples.examples) {
    text += scd_paragraphs(purpose.empty() || purpose.ends_with('?') ? purpose : purpose + ":");
    text += scd_verbatim(example);
  }
  return text;
}

/// The key and the variable that the option overrides.
std::string setting_of(const OptionReference& option) {
  if (option.key == nullptr) return {};
  const auto& variable = option.key->environment;
  return fmt::format("Overrides {}{}.", scd_bold(option.key->key),
                     variable.empty() ? "" : " and " + scd_bold(variable));
}

/// Operands and options, as items.
std::string arguments(const CommandReference& command, int depth = 0) {
  std::string text;
  for (const auto& operand : command.operands)
    text += scd_item(scd_italic(operand.value.name), {scd_escaped(operand.help)}, depth);
  for (const auto& option : command.options) {
    std::vector<std::string> names;
    for (const auto& name : option.names)
      names.push_back(scd_bold(name));
    const auto& value = option.value.name;
    text += scd_item(joined(names, ", ") + (value.empty() ? "" : " " + scd_italic(value)),
                     {scd_escaped(option.help), setting_of(option)}, depth);
  }
  return text;
}

/// Subcommands, which the page of their command explains.
std::string subcommands(const CommandReference& command) {
  if (command.commands.empty()) return {};
  auto text = scd_heading("COMMANDS");
  for (const auto& sub : command.commands)
    text += scd_item(scd_bold(sub.name), {scd_escaped(sub.summary)}) + arguments(sub, 1);
  return text;
}

std::string configuration() {
  auto text = scd_heading("CONFIGURATION") + configuration_text;
  for (const auto& key : config::key_table()) {
    auto origin = key.environment.empty() ? "no environment variable" : scd_bold(key.environment);
    if (!key.default_text.empty()) origin += ", default " + scd_escaped(key.default_text);
    text += scd_item(fmt::format("{} ({})", scd_bold(key.key), origin), {scd_escaped(key.meaning)});
  }
  return text;
}

/// With or without what to do about each status.
std::string statuses(bool with_fixes) {
  auto text = scd_heading("EXIT STATUS");
  for (const auto& [status, meaning, fix] : exit_statuses())
    text += scd_item(scd_bold(status), {scd_escaped(meaning), with_fixes ? scd_escaped(fix) : ""});
  return text;
}

std::string facts_of(const config::KeyEntry& key) {
  std::vector<std::string> facts;
  const auto choices = joined(key.target.choices, ", ");
  if (!choices.empty()) facts.push_back("one of: " + scd_escaped(choices));
  if (key.is_list) facts.emplace_back("a list: separated by commas in the variable");
  if (!key.default_text.empty()) facts.push_back("default: " + scd_escaped(key.default_text));
  if (!key.environment.empty()) facts.push_back("variable: " + scd_bold(key.environment));
  return joined(facts, "; ");
}

std::string keys() {
  std::string text;
  std::string_view section;
  for (const auto& key : config::key_table()) {
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

std::string render_program_page(const CommandReference& program) {
  auto text = scd_head(program.name, 1, summary_of_program(program)) + scd_heading("SYNOPSIS") +
              scd_bold(program.name) + " _COMMAND_ [_OPTION_]... [_ARGUMENT_]...\n\n" +
              description_and_examples(program) + scd_heading("COMMANDS") +
              "Each command has its own page, and a short help: *mailroom COMMAND --help*.\n\n";
  std::vector<std::string> pages;
  std::string_view group;
  for (const auto& command : program.commands) {
    if (command.group != group) text += fmt::format("## {}\n\n", group = command.group);
    pages.push_back(scd_link(with_dashes(command.path), 1));
    text += scd_item(pages.back(), {scd_escaped(command.summary)});
  }
  pages.insert(pages.end(), {scd_link("mailroom.yaml", 5), scd_link("psql", 1)});
  return text + scd_heading("GLOBAL OPTIONS") +
         "Every command accepts these options, before and after its name.\n\n" + arguments(program) +
         configuration() + environment_text + statuses(true) + files_text + scd_heading("SEE ALSO") +
         joined(pages, ", ") + "\n";
}

std::string render_command_page(const CommandReference& command) {
  const auto options = arguments(command);
  const auto& notes = command.examples.notes;
  return scd_head(with_dashes(command.path), 1, command.summary) + synopsis(command) +
         description_and_examples(command) + subcommands(command) +
         (options.empty() ? "" : scd_heading("OPTIONS") + options) +
         (notes.empty() ? "" : scd_heading("NOTES") + scd_verbatim(notes)) + global_options_text +
         statuses(false) + scd_heading("SEE ALSO") + "*mailroom*(1), *mailroom.yaml*(5)\n";
}

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
         scd_paragraphs(file_text) + scd_heading("KEYS") + keys() + scd_heading("EXAMPLES") +
         scd_verbatim(example_configuration) + scd_heading("FILES") +
         "*./mailroom.yaml* ++\n*/etc/mailroom/mailroom.yaml*\n\n" + scd_heading("SEE ALSO") +
         "*mailroom*(1), *mailroom-config*(1)\n";
}

}  // namespace mailroom::cmd
