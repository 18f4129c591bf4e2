#include "cmd/reference/man_pages.hpp"

#include <cctype>
#include <fmt/format.h>

#include "cmd/reference/page_parts.hpp"

namespace mailroom {
namespace {

std::string page_of(const CommandReference& command) {
  auto name = command.path;
  for (auto& c : name) {
    if (c == ' ') c = '-';
  }
  return name;
}

/// The first sentence of the help, in the form of a NAME section: no initial capital, no full stop.
std::string summary_of_program(const CommandReference& program) {
  auto text = program.summary;
  if (text.ends_with('.')) text.pop_back();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

void add_commands_of_program(ManPage& page, const CommandReference& program) {
  page.section("COMMANDS");
  page.paragraph("Each command has its own page, and a short help: " + roff_bold("mailroom COMMAND --help") +
                 ".");
  for (const auto& command : program.commands)
    page.item(page_name(page_of(command), 1), roff_escaped(command.summary));
}

/// Subcommands, which the page of their command explains.
void add_commands_of_command(ManPage& page, const CommandReference& command) {
  if (command.commands.empty()) return;
  page.section("COMMANDS");
  for (const auto& sub : command.commands) {
    page.item(roff_bold(sub.name), roff_escaped(sub.summary));
    if (sub.operands.empty() && sub.options.empty()) continue;
    page.begin_indent();
    add_arguments(page, sub);
    page.end_indent();
  }
}

std::string origin_of(const KeyEntry& key) {
  std::string text = key.environment.empty() ? "no environment variable" : roff_bold(key.environment);
  if (!key.default_text.empty()) text += ", default " + roff_escaped(key.default_text);
  return text;
}

void add_configuration(ManPage& page) {
  page.section("CONFIGURATION");
  page.paragraph(roff_escaped("A command-line option overrides an environment variable, which overrides the "
                              "configuration file, which overrides the default. ") +
                 roff_bold("mailroom config show") + " shows the origin of each value. " +
                 page_name("mailroom.yaml", 5) + " describes the file. Its keys are:");
  for (const auto& key : key_table()) {
    page.item(fmt::format("{} ({})", roff_bold(key.key), origin_of(key)), roff_escaped(key.meaning));
  }
}

void add_environment(ManPage& page) {
  page.section("ENVIRONMENT");
  page.paragraph(
      roff_escaped("In addition to the variables in CONFIGURATION (an empty variable counts as unset):"));
  page.item(roff_bold("MAILROOM_CONFIG"),
            "the configuration file, unless " + roff_bold("--config") + " names one");
  page.item(roff_bold("NO_COLOR"),
            "if not empty, output is not coloured unless " + roff_bold("--color always") + " is given");
  page.item(roff_bold("PGHOST") + ", " + roff_bold("PGDATABASE") + ", " + roff_bold("PGUSER") + ", ...",
            roff_escaped("libpq's variables, for settings that the connection string omits"));
}

void add_files(ManPage& page) {
  page.section("FILES");
  page.item(roff_bold("./mailroom.yaml") + ", " + roff_bold("/etc/mailroom/mailroom.yaml"),
            "the configuration file, if neither " + roff_bold("--config") + " nor " +
                roff_bold("MAILROOM_CONFIG") + " names one: the first of these that exists");
}

void add_see_also(ManPage& page, const std::string& pages) {
  page.section("SEE ALSO");
  page.line(pages);
}

}  // namespace

std::string render_program_page(const CommandReference& program) {
  ManPage page(program.name, 1, MAILROOM_VERSION);
  add_name(page, program.name, summary_of_program(program));
  page.section("SYNOPSIS");
  page.line(roff_bold(program.name) + " " + roff_italic("COMMAND") + " [" + roff_italic("OPTION") + "]... [" +
            roff_italic("ARGUMENT") + "]...");
  page.section("DESCRIPTION");
  page.paragraphs(program.description);
  add_examples(page, program.examples.examples);
  add_commands_of_program(page, program);
  page.section("GLOBAL OPTIONS");
  page.paragraph(roff_escaped("Every command accepts these options, before and after its name."));
  add_arguments(page, program);
  add_configuration(page);
  add_environment(page);
  add_exit_statuses(page, true);
  add_files(page);
  std::string pages;
  for (const auto& command : program.commands)
    pages += page_name(page_of(command), 1) + ", ";
  add_see_also(page, pages + page_name("mailroom.yaml", 5) + ", " + page_name("psql", 1));
  return page.text();
}

std::string render_command_page(const CommandReference& command) {
  ManPage page(page_of(command), 1, MAILROOM_VERSION);
  add_name(page, page_of(command), command.summary);
  add_synopsis(page, command);
  page.section("DESCRIPTION");
  page.paragraphs(command.description);
  add_examples(page, command.examples.examples);
  add_commands_of_command(page, command);
  if (!command.operands.empty() || !command.options.empty()) {
    page.section("OPTIONS");
    add_arguments(page, command);
  }
  add_notes(page, command.examples.notes);
  page.section("GLOBAL OPTIONS");
  page.paragraph(page_name("mailroom", 1) +
                 roff_escaped(" describes the options of every command, such as ") + roff_bold("--config") +
                 " and " + roff_bold("--output") +
                 ", the configuration, environment and files, and what to do after each exit status.");
  add_exit_statuses(page, false);
  add_see_also(page, page_name("mailroom", 1) + ", " + page_name("mailroom.yaml", 5));
  return page.text();
}

}  // namespace mailroom
