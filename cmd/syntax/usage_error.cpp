// Finds the nearest command or option, and rewords the errors of CLI11.

#include "cmd/syntax/usage_error.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace mailroom {
namespace {

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

}  // namespace

std::string path_of(const CLI::App& app) {
  const auto* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

void refuse_leftovers(const CLI::App& app) {
  const auto rest = app.remaining();
  if (!rest.empty()) throw unknown_word(command_of(app), rest.front());
}

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

}  // namespace mailroom
