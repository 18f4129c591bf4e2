#include "cmd/arguments.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "cmd/commands.hpp"
#include "cmd/usage_error.hpp"
#include "crypto/token.hpp"

namespace mailroom {
namespace {

/// What parsing writes to; the runs that come of it share it.
struct Parse {
  GlobalOptions global;
  Overrides overrides;
  std::vector<std::pair<CLI::App*, Run>> runs;
};

/// A token may begin with a hyphen, and no option is 86 characters of its alphabet. The mark keeps CLI11 from
/// taking it for one; verify removes it.
bool is_token_with_hyphen(const std::string& argument) {
  return argument.size() == token_size && argument.front() == '-' &&
         std::all_of(argument.begin(), argument.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '+' || c == '/';
         });
}

std::vector<std::string> with_marked_tokens(std::vector<std::string> arguments) {
  for (auto& argument : arguments) {
    if (is_token_with_hyphen(argument)) argument.insert(0, 1, token_mark);
  }
  return arguments;
}

/// An option with few values, which a refusal names.
template <typename T>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, T& value,
                        const std::vector<std::pair<std::string, T>>& choices, const std::string& names) {
  const auto store = [&value, flag, choices, names](const std::string& text) {
    const auto choice =
        std::find_if(choices.begin(), choices.end(), [&](const auto& entry) { return entry.first == text; });
    if (choice == choices.end()) {
      throw CLI::ValidationError(
          fmt::format("{} is '{}', and must be {}", flag.substr(flag.find("--")), text, names));
    }
    value = choice->second;
  };
  return app.add_option_function<std::string>(flag, store, names);
}

void add_global_options(CLI::App& app, Parse& parse) {
  const auto group = "Global options";
  app.add_option_function<std::string>(
         "-c,--config", [&parse](const std::string& file) { parse.overrides.file = file; },
         "configuration file (else MAILROOM_CONFIG, ./mailroom.yaml, /etc/mailroom/mailroom.yaml)")
      ->option_text("FILE")
      ->group(group);
  add_setting(app, parse.overrides, "--database-url", "database.url", "libpq URI or keyword=value list")
      ->group(group);
  add_choice(app, "-o,--output", parse.global.output,
             {{"text", OutputFormat::text}, {"json", OutputFormat::json}}, "text or json")
      ->option_text("FORMAT")
      ->group(group);
  add_setting(app, parse.overrides, "--log-level", "log.level", "debug, info, warn or error")->group(group);
  add_setting(app, parse.overrides, "--log-format", "log.format", "text, logfmt or json")->group(group);
  add_choice(app, "--color", parse.global.colour,
             {{"auto", ColourMode::automatic}, {"always", ColourMode::always}, {"never", ColourMode::never}},
             "auto, always or never")
      ->option_text("WHEN")
      ->group(group);
  app.add_flag("-q,--quiet", parse.global.quiet, "log errors alone")->group(group);
  app.add_flag("-v,--verbose", parse.global.verbose, "log everything")->group(group);
  app.add_flag("-y,--yes", parse.global.yes, "answer every question with yes")->group(group);
  app.set_help_flag("-h,--help", "show this help")->group(group);
}

/// Examples first: they are what a reader looks for.
class ExamplesFirst final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return app->get_footer() + "\n" + CLI::Formatter::make_help(app, std::move(name), mode);
  }
  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    std::string path = app->get_name();
    for (const auto* parent = app->get_parent(); parent != nullptr; parent = parent->get_parent()) {
      path = parent->get_name() + " " + path;
    }
    return "\n" + CLI::Formatter::make_usage(app, path);
  }
  /// What stands for the value, and nothing of its type or its being required: the usage line says that.
  std::string make_option_opts(const CLI::Option* option) const override {
    const auto& text = option->get_option_text();
    return text.empty() ? "" : " " + text;
  }
  std::string make_footer(const CLI::App* /*app*/) const override { return ""; }
};

constexpr const char* examples =
    "Examples:\n"
    "  mailroom migrate                     bring the schema up to date\n"
    "  mailroom collect                     write batches of signed tokens to stdout\n"
    "  mailroom verify TOKEN                say whether a token is genuine and usable\n"
    "  mailroom simulate --accounts 5       make accounts to try it out with\n"
    "  mailroom COMMAND --help              examples and options of one command\n";

void configure(CLI::App& app, Parse& parse) {
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
  add_global_options(app, parse);
  for (const auto& command : commands()) {
    auto* sub = app.add_subcommand(command.name, command.summary);
    sub->footer(command.examples);
    sub->formatter(std::make_shared<ExamplesFirst>());
    sub->allow_extras(false);
    sub->set_help_flag("-h,--help", "show this help; mailroom --help lists the options of all commands");
    parse.runs.emplace_back(sub, command.add(*sub, parse.overrides));
  }
}

Run print(std::string text) {
  return [text = std::move(text)](Context& context) {
    context.out().write(text);
    return ExitCode::done;
  };
}

}  // namespace

Invocation parse_arguments(const std::vector<std::string>& arguments) {
  Parse parse;
  CLI::App app;
  configure(app, parse);
  auto reversed = with_marked_tokens(arguments);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    refuse_leftovers(app);
    const auto used = app.get_subcommands();
    const auto* about = used.empty() ? &app : used.front();
    return {parse.global, parse.overrides, print(about->help("", CLI::AppFormatMode::Normal))};
  } catch (const CLI::CallForVersion& version) {
    return {parse.global, parse.overrides, print(std::string(version.what()) + "\n")};
  } catch (const CLI::RequiredError& error) {
    // A mistyped option is what keeps many a required word away.
    refuse_leftovers(app);
    throw usage_error(app, error);
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  refuse_leftovers(app);
  const auto used = app.get_subcommands();
  if (used.empty()) throw Error(ExitCode::usage, "no command is given", "mailroom --help lists the commands");
  const auto run = std::find_if(parse.runs.begin(), parse.runs.end(),
                                [&](const auto& entry) { return entry.first == used.front(); });
  return {parse.global, parse.overrides, run->second};
}

}  // namespace mailroom
