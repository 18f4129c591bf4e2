// The global options, the description of the program, and what --version shows.

#include "cmd/syntax/command_line.hpp"

#include <fmt/format.h>

#include "base/journal.hpp"
#include "carriers/carriers.hpp"
#include "cmd/commands.hpp"
#include "cmd/syntax/help_format.hpp"

namespace mailroom {
namespace {

/// Names the parts that a build may lack.
std::string version_text() {
  std::string sinks;
  for (const auto& kind : carrier_kinds()) {
    if (kind.carries != Carries::lines) continue;
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
  const Choices<OutputFormat> formats{{"text", OutputFormat::text}, {"json", OutputFormat::json}};
  const Choices<ColourMode> colours{
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
    "  mailroom migrate             apply all pending migrations\n"
    "  mailroom collect             write batches of signed tokens to stdout\n"
    "  mailroom COMMAND --help      show examples and options of one command\n";

}  // namespace

const char* const program_description =
    "mailroom emits sign-up and recovery tokens from a PostgreSQL database reliably, with no broker to run. "
    "Triggers create a token for each new account and each recovery, and consume it when it is used. A "
    "collector wakes when the database notifies it, claims due tokens in batches, signs each token with "
    "HMAC-SHA256, and writes one line per batch to standard output for a sender to read.\n\n"
    "Every committed token is emitted at least once, and exactly once if nothing crashes, however many "
    "collectors run and in whatever order transactions commit.\n\n"
    "Data goes to standard output, messages and logs to standard error. No secret, token or code is ever "
    "logged. No command requires a terminal: without one, a command that would ask ends with exit status 7 "
    "unless --yes is given.";

CommandLine::CommandLine() {
  app.name("mailroom");
  app.description(
      "Emit signed sign-up and recovery tokens from PostgreSQL, in batches, with no broker to run.");
  app.footer(examples);
  app.formatter(std::make_shared<ExamplesFirst>());
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.allow_extras();
  app.set_version_flag("--version", version_text(), "show the version and what is built in")
      ->group("Global options");
  add_global_options(*this);
  for (const auto& command : commands()) {
    auto* sub = app.add_subcommand(command.name, command.summary);
    sub->footer(command.examples);
    sub->formatter(std::make_shared<ExamplesFirst>());
    sub->allow_extras(false);
    sub->set_help_flag("-h,--help", "show this help; global options: mailroom --help");
    CommandSyntax syntax(*sub, overrides);
    runs.emplace_back(sub, command.add(syntax));
    syntax.settings(command.name);
  }
}

}  // namespace mailroom
