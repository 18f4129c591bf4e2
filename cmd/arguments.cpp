#include "cmd/arguments.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "cmd/command_line.hpp"
#include "cmd/usage_error.hpp"
#include "crypto/token.hpp"

namespace mailroom {
namespace {

/// A token may begin with a hyphen, one that was cut short or mangled as well, and no option is as long. The
/// mark keeps CLI11 from taking it for one; the commands remove it.
bool is_token_with_hyphen(const std::string& argument) {
  if (argument.size() < secret_text_size || argument.front() != '-') return false;
  // Shorter than a token, with a slash, it may be a path behind a short option.
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

Run print(std::string text) {
  return [text = std::move(text)](Context& context) {
    context.out().write(text);
    return ExitCode::done;
  };
}

}  // namespace

Invocation parse_arguments(const std::vector<std::string>& arguments) {
  CommandLine line;
  auto& app = line.app;
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
    // A mistyped option is what keeps many a required word away.
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
