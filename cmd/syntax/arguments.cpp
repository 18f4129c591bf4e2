// Marks tokens that begin with a hyphen, then parses with CLI11.

#include "cmd/syntax/arguments.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/syntax/command_line.hpp"
#include "cmd/syntax/usage_error.hpp"
#include "crypto/token.hpp"

namespace mailroom {
namespace {

/// A token may begin with a hyphen, even one that is truncated or mangled, and no option is as long.
/// token_mark keeps CLI11 from parsing it as an option; the commands remove the mark.
bool is_token_with_hyphen(const std::string& argument) {
  if (argument.size() < secret_text_size || argument.front() != '-') return false;
  // A shorter argument with a slash may be a short option followed by a path.
  const std::string_view others = argument.size() == token_size ? "-_+/" : "-_";
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

}  // namespace

Invocation parse_arguments(const std::vector<std::string>& arguments) {
  CommandLine line;
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

}  // namespace mailroom
