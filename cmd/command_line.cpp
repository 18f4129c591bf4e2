#include "cmd/command_line.hpp"

#include "cmd/commands.hpp"
#include "cmd/help_format.hpp"

namespace mailroom {
namespace {

void add_global_options(CommandLine& line) {
  auto& app = line.app;
  const auto group = "Global options";
  app.add_option_function<std::string>(
         "-c,--config", [&line](const std::string& file) { line.overrides.file = file; },
         "configuration file (else MAILROOM_CONFIG, ./mailroom.yaml, /etc/mailroom/mailroom.yaml)")
      ->option_text("FILE")
      ->group(group);
  add_setting(app, line.overrides, "--database-url", "database.url", "libpq URI or keyword=value list")
      ->option_text("URL")
      ->group(group);
  add_choice(app, "-o,--output", line.global.output,
             {{"text", OutputFormat::text}, {"json", OutputFormat::json}}, "text or json")
      ->option_text("FORMAT")
      ->group(group);
  add_setting(app, line.overrides, "--log-level", "log.level", "debug, info, warn or error")
      ->option_text("LEVEL")
      ->group(group);
  add_setting(app, line.overrides, "--log-format", "log.format", "text, logfmt or json")
      ->option_text("FORMAT")
      ->group(group);
  add_choice(app, "--color", line.global.colour,
             {{"auto", ColourMode::automatic}, {"always", ColourMode::always}, {"never", ColourMode::never}},
             "auto, always or never")
      ->option_text("WHEN")
      ->group(group);
  app.add_flag("-q,--quiet", line.global.quiet, "log errors alone")->group(group);
  app.add_flag("-v,--verbose", line.global.verbose, "log everything")->group(group);
  app.add_flag("-y,--yes", line.global.yes, "answer every question with yes")->group(group);
  app.set_help_flag("-h,--help", "show this help")->group(group);
}

constexpr const char* examples =
    "Examples:\n"
    "  mailroom migrate             bring the schema up to date\n"
    "  mailroom collect             write batches of signed tokens to stdout\n"
    "  mailroom COMMAND --help      examples and options of one command\n";

}  // namespace

const char* const program_description =
    "Sign-up and recovery mail leaves a PostgreSQL database reliably, with no broker to run. Triggers make a "
    "token for each new account and each recovery, and consume it when it is used. A collector wakes when "
    "the "
    "database notifies it, claims what is due in batches, signs each token with HMAC-SHA256, and writes one "
    "line a batch to standard output for a sender to read.\n\n"
    "What is committed is handed on at least once, and exactly once while nothing crashes, however many "
    "collectors run and in whatever order transactions commit.\n\n"
    "Data goes to standard output, messages and logs to standard error. No secret, token or code is ever "
    "logged. Nothing requires a terminal: a command that would ask ends with exit status 7 unless --yes is "
    "given.";

CommandLine::CommandLine() {
  app.name("mailroom");
  app.description("Signed sign-up and recovery tokens out of PostgreSQL, in batches, with no broker to run.");
  app.footer(examples);
  app.formatter(std::make_shared<ExamplesFirst>());
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.allow_extras();
  app.set_version_flag("--version", std::string("mailroom ") + MAILROOM_VERSION, "show the version")
      ->group("Global options");
  add_global_options(*this);
  for (const auto& command : commands()) {
    auto* sub = app.add_subcommand(command.name, command.summary);
    sub->footer(command.examples);
    sub->formatter(std::make_shared<ExamplesFirst>());
    sub->allow_extras(false);
    sub->set_help_flag("-h,--help", "show this help; global options: mailroom --help");
    runs.emplace_back(sub, command.add(*sub, overrides));
  }
}

}  // namespace mailroom
