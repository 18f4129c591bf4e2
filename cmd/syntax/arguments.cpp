// Marks tokens that begin with a hyphen, then parses with CLI11.

#include "cmd/syntax/arguments.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/sendmail/sendmail.hpp"
#include "cmd/syntax/command_line.hpp"
#include "crypto/token.hpp"

namespace mailroom::cmd {
namespace {

/// A token may begin with a hyphen, even one that is truncated or mangled, and no option is as long.
/// token_mark keeps CLI11 from parsing it as an option; the commands remove the mark.
bool is_token_with_hyphen(const std::string& argument) {
  if (argument.size() < crypto::secret_text_size || argument.front() != '-') return false;
  // A shorter argument with a slash may be a short option followed by a path.
  const std::string_view others = argument.size() == crypto::token_size ? "-_+/" : "-_";
  return std::all_of(argument.begin(), argument.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || others.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::vector<std::string> with_marked_tokens(std::vector<std::string> arguments) {
  for (auto& argument : arguments) {
    if (is_token_with_hyphen(argument)) argument.insert(0, 1, token_mark);
  }
  return arguments;
}

/// `help` and `version` are options, not commands.
void refuse_option_as_command(const std::vector<std::string>& arguments) {
  if (arguments.empty() || (arguments[0] != "help" && arguments[0] != "version")) return;
  const bool is_about_command =
      arguments.size() > 1 &&
      std::ranges::any_of(commands(), [&](const auto& command) { return command.name == arguments[1]; });
  const auto meant = is_about_command ? "mailroom " + arguments[1] + " --help" : "mailroom --" + arguments[0];
  throw Error(ExitCode::usage, fmt::format("there is no command '{}'", arguments[0]),
              "did you mean: " + meant);
}

/// Arguments may be printed later, so they must be UTF-8.
void refuse_invalid_text(const std::vector<std::string>& arguments) {
  for (const auto& argument : arguments) {
    if (is_utf8(argument)) continue;
    throw Error(ExitCode::usage, fmt::format("the argument '{}' is not valid UTF-8", printable(argument)),
                "type it in a terminal whose character set is UTF-8");
  }
}

Run print(std::string text) {
  return [text = std::move(text)](Context& context) {
    context.print(text);
    return ExitCode::done;
  };
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* app = &command; app != nullptr; app = app->get_parent()) {
    for (const auto* option : app->get_options()) {
      for (const auto& name : option->get_lnames())
        names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* sub : command.get_subcommands({}))
    names.push_back(sub->get_name());
  return names;
}

/// The command or option nearest to `word`, in full; empty if none is near.
std::string suggestion(const CLI::App& command, const std::string& word) {
  if (is_option(word)) return nearest_word(word.substr(0, word.find('=')), option_names(command));
  const auto names = subcommand_names(command);
  // The beginning of a longer name: `rewind`.
  const auto longer = std::find_if(names.begin(), names.end(),
                                   [&](const auto& name) { return name.starts_with(word + "-"); });
  const auto meant = longer != names.end() ? *longer : nearest_word(word, names);
  return meant.empty() ? "" : path_of(command) + " " + meant;
}

Error unknown_word(const CLI::App& command, const std::string& word) {
  const auto path = path_of(command);
  const auto meant = suggestion(command, word);
  const bool is_command = command.get_parent() == nullptr && !is_option(word);
  const auto message =
      is_command ? fmt::format("there is no command '{}'", word)
                 : fmt::format("{} takes no {} '{}'", path, is_option(word) ? "option" : "argument", word);
  if (!meant.empty()) return Error(ExitCode::usage, message, "did you mean: " + meant);
  return Error(ExitCode::usage, message,
               path + (is_command ? " --help lists the commands" : " --help shows what it takes"));
}

/// For a command that requires a command below it.
Error lacks_command(const CLI::App& command) {
  std::string hint;
  for (const auto& name : subcommand_names(command)) {
    hint += (hint.empty() ? "" : ", or ") + path_of(command) + " " + name;
  }
  return Error(ExitCode::usage, command.get_name() + " needs a command", hint);
}

const CLI::App& command_of(const CLI::App& app) {
  const auto used = app.get_subcommands();
  return used.empty() ? app : *used.front();
}

/// Throws Error(usage), with the nearest command or option as the hint, if parsing left an argument over.
/// CLI11 itself accepts it, because global options are allowed anywhere.
void refuse_leftovers(const CLI::App& app) {
  const auto rest = app.remaining();
  if (!rest.empty()) throw unknown_word(command_of(app), rest.front());
}

/// CLI11's error in our wording: in lower case, without a full stop.
Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto& command = command_of(app);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
      command.get_subcommands().size() < command.get_require_subcommand_min()) {
    return lacks_command(command);
  }
  std::string message = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    message = message.substr(0, message.find(':')) + " needs a value";
  }
  const bool sentence = message.size() > 1 && std::islower(static_cast<unsigned char>(message[1])) != 0;
  if (sentence) message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  return Error(ExitCode::usage, message, path_of(command) + " --help shows the options");
}

/// Where the command sendmail is, behind global options, if it is the one; it takes what follows in a syntax
/// of its own, but for a question for help.
std::optional<std::size_t> place_of_sendmail(const std::vector<std::string>& arguments) {
  const auto found = std::ranges::find_if(arguments, [](const std::string& word) {
    return std::ranges::any_of(commands(), [&](const Command& command) { return command.name == word; });
  });
  if (found == arguments.end() || *found != "sendmail") return std::nullopt;
  const auto place = static_cast<std::size_t>(found - arguments.begin());
  const bool asks =
      place + 2 == arguments.size() && (arguments.back() == "--help" || arguments.back() == "-h");
  return asks ? std::nullopt : std::optional(place);
}

Invocation parse_words(const std::vector<std::string>& arguments) {
  CommandLine line(Described::met);
  auto& app = line.app;
  refuse_invalid_text(arguments);
  refuse_option_as_command(arguments);
  auto reversed = with_marked_tokens(arguments);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    refuse_leftovers(app);
    const auto used = app.get_subcommands();
    const auto* about = used.empty() ? &app : used.front();
    return {line.global, line.overrides, print(about->help("", CLI::AppFormatMode::Normal))};
  } catch (const CLI::CallForVersion& version) {
    return {line.global, line.overrides, print(std::string(version.what()) + "\n")};
  } catch (const CLI::RequiredError& error) {
    // The cause is often a mistyped option, so that is reported first.
    refuse_leftovers(app);
    throw usage_error(app, error);
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  refuse_leftovers(app);
  const auto used = app.get_subcommands();
  if (used.empty()) throw Error(ExitCode::usage, "no command is given", "mailroom --help lists the commands");
  const auto run = std::find_if(line.runs.begin(), line.runs.end(),
                                [&](const auto& entry) { return entry.first == used.front(); });
  return {line.global, line.overrides, run->second};
}

}  // namespace

Invocation parse_arguments(const std::vector<std::string>& arguments) {
  const auto place = place_of_sendmail(arguments);
  if (!place) return parse_words(arguments);
  const auto given = arguments.begin() + static_cast<std::ptrdiff_t>(*place) + 1;
  auto invocation = parse_words({arguments.begin(), given});
  invocation.run = [words = std::vector(given, arguments.end())](Context& context) {
    return run_sendmail(context, words);
  };
  return invocation;
}

}  // namespace mailroom::cmd
