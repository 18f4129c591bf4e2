// The global options, the description of the program, and what --version shows.

#include "cmd/syntax/command_line.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/output.hpp"
#include "base/terminal_text.hpp"
#include "carriers/carriers.hpp"
#include "cmd/command.hpp"
#include "cmd/syntax/command_syntax.hpp"

namespace mailroom::cmd {
namespace {

/// Names the parts that a build may lack.
std::string build_text() {
  std::string sinks;
  for (const auto& kind : carriers::carrier_kinds()) {
    sinks += fmt::format("{}{}", sinks.empty() ? "" : ", ", kind.name);
    if (kind.make == nullptr) sinks += fmt::format(" (not built: {})", kind.option);
    if (kind.library != nullptr) sinks += fmt::format(" ({})", kind.library());
  }
  return fmt::format("mailroom {} ({} systemd; sinks: {})", MAILROOM_VERSION,
                     has_journal ? "with" : "without", sinks);
}

void add_global_options(CommandLine& line) {
  const auto group = "Global options";
  CommandSyntax syntax(line.app, line.overrides);
  auto file = syntax.value("-c,--config FILE",
                           "read configuration FILE (else MAILROOM_CONFIG, ./mailroom.yaml, "
                           "/etc/mailroom/mailroom.yaml)",
                           [&line](const std::string& path) { line.overrides.file = path; });
  const config::Choices<OutputFormat> formats{{"text", OutputFormat::text}, {"json", OutputFormat::json}};
  const config::Choices<ColourMode> colours{
      {"auto", ColourMode::automatic}, {"always", ColourMode::always}, {"never", ColourMode::never}};
  file.in_group(group);
  for (auto option : syntax.settings(""))
    option.in_group(group);
  for (auto option : {syntax.choice("-o,--output FORMAT", line.global.output, formats, "text or json",
                                    "print text or json"),
                      syntax.choice("--color WHEN", line.global.colour, colours, "auto, always or never",
                                    "use colors: auto, always or never"),
                      syntax.flag("-q,--quiet", line.global.quiet, "log errors only"),
                      syntax.flag("-v,--verbose", line.global.verbose, "log everything"),
                      syntax.flag("-y,--yes", line.global.yes, "answer every question with yes")}) {
    option.in_group(group);
  }
  line.app.set_help_flag("-h,--help", "show this help")->group(group);
}

constexpr const char* examples =
    "Examples:\n"
    "  mailroom init           set it up: database, sender, relay, a mail for trial\n"
    "  mailroom send           mail what SQL statements ask for, until stopped\n"
    "  mailroom message list   show what became of it\n";

constexpr std::size_t widest_column = 32;
constexpr std::size_t widest_line = 120;

/// Names and their descriptions.
using List = std::vector<std::pair<std::string, std::string>>;

/// The column at which the descriptions begin: after the longest name that leaves enough room for them. The
/// description of a longer name begins on the next line.
std::size_t text_column(const List& list) {
  std::size_t column = 0;
  for (const auto& [name, text] : list) {
    const auto end = 2 + display_width(name) + 2;
    if (end <= widest_column) column = std::max(column, end);
  }
  return column == 0 ? widest_column : column;
}

std::size_t line_width() {
  return std::min(Output(STDOUT_FILENO).width(), widest_line);
}

std::string render_list(const std::string& title, const List& list, std::size_t column) {
  auto lines = "\n" + title + ":\n";
  for (const auto& [name, text] : list) {
    const auto start = 2 + display_width(name);
    lines += "  " + name;
    if (!text.empty()) {
      lines += start + 2 <= column ? std::string(column - start, ' ') : "\n" + std::string(column, ' ');
      lines += wrapped(text, line_width(), column, column);
    }
    lines += "\n";
  }
  return lines;
}

}  // namespace

const char* const program_description =
    "mailroom is database mail for PostgreSQL. An application asks for a mail by one SQL statement, in the "
    "transaction that needs it: SELECT mailroom_send(ARRAY['ada@example.org'], subject => 'Hello', text => "
    "'It works.'). If the transaction rolls back, nobody is mailed. Once it has committed, mailroom send "
    "makes the mail, delivers it through an SMTP relay, Amazon SES or Resend, tries again what is deferred, "
    "and records what became of it for each recipient.\n\n"
    "mailroom init sets it up, with a mail for trial; mailroom message list and mailroom audit show what "
    "became of a mail.\n\n"
    "Every committed mail goes out at least once, and exactly once if nothing crashes, however many senders "
    "run and in whatever order transactions commit.\n\n"
    "Sign-up and recovery mail for a table of accounts is built in: triggers create a token for each new "
    "account and each recovery, and consume it when it is used; its link is signed with HMAC-SHA256. A "
    "sender of your own can take the place of mailroom send: mailroom collect hands tokens over in "
    "batches.\n\n"
    "Data goes to standard output, messages and logs to standard error. No secret, token or code is ever "
    "logged. No command requires a terminal: without one, a command that would ask ends with exit status 7 "
    "unless --yes is given.";

CommandLine::CommandLine(Described described) {
  app.name("mailroom");
  app.description(
      "Database mail for PostgreSQL: SELECT mailroom_send() asks for a mail in the transaction that needs it, "
      "mailroom send delivers it, and the record says what became of it.");
  app.footer(examples);
  app.formatter(std::make_shared<ExamplesFirst>());
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.allow_extras();
  app.set_version_flag("--version", build_text(), "show the version and what is built in")
      ->group("Global options");
  add_global_options(*this);
  for (const auto& group : command_groups()) {
    for (const auto& command : group.commands)
      add_command(command, group.title, described);
  }
}

void CommandLine::add_command(const Command& command, const char* group, Described described) {
  auto* sub = app.add_subcommand(command.name, command.summary);
  sub->group(group);
  sub->footer(command.examples);
  sub->formatter(std::make_shared<ExamplesFirst>());
  sub->allow_extras(false);
  sub->set_help_flag("-h,--help", "show this help; global options: mailroom --help");
  const auto describe = [this, sub, &command](std::size_t /*arguments*/ = 0) {
    CommandSyntax syntax(*sub, overrides);
    runs.emplace_back(sub, command.add(syntax));
    syntax.settings(command.name);
  };
  if (described == Described::all) {
    describe();
  } else {
    sub->preparse_callback(describe);
  }
}

ExamplesFirst::ExamplesFirst() {
  label("SUBCOMMAND", "COMMAND");
  label("Positionals", "Arguments");
}

// Joins the parts itself: versions of CLI11's make_help differ in the empty lines between them.
std::string ExamplesFirst::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  const auto footer = app->get_footer();
  const auto end = std::min(footer.find("\n\n"), footer.size());
  auto examples = footer.substr(0, end);
  if (!examples.ends_with('\n')) examples += '\n';
  return examples + "\n" + make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
         make_groups(app, mode) + make_subcommands(app, mode) + "\n" + make_footer(app);
}

std::string ExamplesFirst::make_description(const CLI::App* app) const {
  return wrapped(app->get_description(), line_width(), 0) + "\n";
}

std::string ExamplesFirst::make_usage(const CLI::App* app, std::string /*name*/) const {
  std::string path = app->get_name();
  for (const auto* parent = app->get_parent(); parent != nullptr; parent = parent->get_parent()) {
    path = parent->get_name() + " " + path;
  }
  return "\n" + CLI::Formatter::make_usage(app, path);
}

std::string ExamplesFirst::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  List list;
  for (const auto* option : options) {
    list.emplace_back(make_option_name(option, is_positional) + make_option_opts(option),
                      make_option_desc(option));
  }
  return render_list(group, list, text_column(list));
}

std::string ExamplesFirst::make_subcommands(const CLI::App* app, CLI::AppFormatMode /*mode*/) const {
  List all;
  std::vector<std::pair<std::string, List>> groups;
  for (const auto* sub : app->get_subcommands({})) {
    all.emplace_back(sub->get_name(), sub->get_description());
    if (groups.empty() || groups.back().first != sub->get_group())
      groups.emplace_back(sub->get_group(), List{});
    groups.back().second.push_back(all.back());
  }
  std::string lists;
  for (const auto& [title, list] : groups)
    lists += render_list(title, list, text_column(all));
  return lists;
}

std::string ExamplesFirst::make_option_opts(const CLI::Option* option) const {
  const auto& text = option->get_option_text();
  return text.empty() ? "" : " " + text;
}

std::string ExamplesFirst::make_footer(const CLI::App* app) const {
  return folded(parse_examples(app->get_footer()).notes, line_width());
}

std::string path_of(const CLI::App& app) {
  const auto* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

}  // namespace mailroom::cmd
