#include "cmd/arguments.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.hpp"
#include "cmd/commands.hpp"
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

Error unknown_command(const std::string& word) {
  std::vector<std::string> names;
  for (const auto& command : commands())
    names.emplace_back(command.name);
  const auto nearest = nearest_word(word, names);
  return Error(ExitCode::usage, fmt::format("there is no command '{}'", word),
               nearest.empty() ? "mailroom --help lists the commands"
                               : fmt::format("did you mean: mailroom {}", nearest));
}

/// What nothing took: CLI11 leaves it over, since a global option may stand anywhere.
Error unknown_argument(const CLI::App& command, const std::string& word) {
  std::vector<std::string> names;
  for (const auto* app = &command; app != nullptr; app = app->get_parent()) {
    for (const auto* option : app->get_options()) {
      for (const auto& name : option->get_lnames())
        names.push_back("--" + name);
    }
  }
  const bool option = word.size() > 1 && word.front() == '-';
  const auto nearest = option ? nearest_word(word.substr(0, word.find('=')), names) : std::string();
  return Error(
      ExitCode::usage,
      fmt::format("mailroom {} takes no {} '{}'", command.get_name(), option ? "option" : "argument", word),
      nearest.empty() ? fmt::format("mailroom {} --help shows what it takes", command.get_name())
                      : fmt::format("did you mean: {}", nearest));
}

Run print(std::string text) {
  return [text = std::move(text)](Context& context) {
    context.out().write(text);
    return ExitCode::done;
  };
}

/// CLI11's message, as our messages are: in lower case, without a full stop.
Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  const bool sentence = message.size() > 1 && std::islower(static_cast<unsigned char>(message[1])) != 0;
  if (sentence) message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  const auto used = app.get_subcommands();
  return Error(
      ExitCode::usage, message,
      fmt::format("mailroom {}--help shows the options", used.empty() ? "" : used.front()->get_name() + " "));
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
    const auto used = app.get_subcommands();
    const auto* about = used.empty() ? &app : used.front();
    return {parse.global, parse.overrides, print(about->help("", CLI::AppFormatMode::Normal))};
  } catch (const CLI::CallForVersion& version) {
    return {parse.global, parse.overrides, print(std::string(version.what()) + "\n")};
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  const auto used = app.get_subcommands();
  const auto rest = app.remaining();
  if (!used.empty() && !rest.empty()) throw unknown_argument(*used.front(), rest.front());
  if (used.empty()) {
    if (!rest.empty()) throw unknown_command(rest.front());
    throw Error(ExitCode::usage, "no command is given", "mailroom --help lists the commands");
  }
  const auto run = std::find_if(parse.runs.begin(), parse.runs.end(),
                                [&](const auto& entry) { return entry.first == used.front(); });
  return {parse.global, parse.overrides, run->second};
}

}  // namespace mailroom
