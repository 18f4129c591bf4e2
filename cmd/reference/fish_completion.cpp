// Writes the completion for fish: a line for each word, with the place where it fits.

#include <fmt/format.h>

#include "base/text.hpp"
#include "cmd/reference/generated_files.hpp"

namespace mailroom::cmd {
namespace {

constexpr const char* fish_head =
    R"(# fish completion for mailroom, generated from its command-line definitions

# Prints the path of the command before the cursor: mailroom migrate down
function __mailroom_place
    set -l words (commandline -opc)
    set -e words[1]
    set -l place mailroom
    set -l pending
    for word in $words
        if test -n "$pending"
            set pending
            continue
        end
        switch $word
            case '--*=*'
            case '-*'
                if __mailroom_has_value "$place $word"
                    set pending yes
                end
            case '*'
                if __mailroom_is_place "$place $word"
                    set place "$place $word"
                end
        end
    end
    echo $place
end

# True if the command before the cursor is one of the arguments.
function __mailroom_at
    # fish asks for each command in turn, with the same line.
    set -l line (commandline -pc | string collect)
    if not set -q __mailroom_line; or test "$line" != "$__mailroom_line"
        set -g __mailroom_line $line
        set -g __mailroom_line_place (__mailroom_place)
    end
    contains -- "$__mailroom_line_place" $argv
end

)";

std::string in_quotes(std::string_view text) {
  return "'" + with_backslashes(text, "\\'") + "'";
}

/// A fish function that is true if its argument matches one of `patterns`.
std::string render_predicate(const std::string& name, const std::vector<std::string>& patterns) {
  std::string text = "function " + name + "\n    switch $argv[1]\n        case";
  for (const auto& pattern : patterns)
    text += " \\\n            " + in_quotes(pattern);
  return text + "\n            return 0\n    end\n    return 1\nend\n\n";
}

std::string render_predicates(const CommandReference& program) {
  std::vector<std::string> paths;
  for (const auto& place : places_of(program))
    paths.push_back(place.command->path);
  std::vector<std::string> valued;
  for (const auto& [path, option] : valued_options(program)) {
    for (const auto& name : option.names)
      valued.push_back(path + " " + name);
  }
  return "# True for the path of a command.\n" + render_predicate("__mailroom_is_place", paths) +
         "# True for the path of a command and one of its options, if that option needs a value.\n" +
         render_predicate("__mailroom_has_value", valued);
}

/// The candidates for `value`, as arguments of fish's complete.
std::string values_of(const ValueReference& value) {
  switch (value.kind) {
    case ValueReference::Kind::choice:
      return " -a " + in_quotes(joined(value.choices));
    case ValueReference::Kind::file:
      return " -F";
    case ValueReference::Kind::directory:
      // After --option= complete only the rest.
      return R"( -a '(__fish_complete_directories (string replace -r "^--[^=]*=" "" -- (commandline -ct)))')";
    default:
      return "";
  }
}

std::string fish_option(const OptionReference& option, const std::string& condition) {
  std::string text = "complete -c mailroom" + condition;
  for (const auto& name : option.names) {
    const bool is_long = name.starts_with("--");
    text += (is_long ? " -l " : " -s ") + name.substr(is_long ? 2 : 1);
  }
  // -x: takes a value that is not a file; -r: takes a value.
  if (option.takes_next_word())
    text += (option.value.kind == ValueReference::Kind::file ? " -r" : " -x") + values_of(option.value);
  return text + " -d " + in_quotes(option.help) + "\n";
}

std::string fish_place(const Place& place) {
  const auto& command = *place.command;
  const auto condition = fmt::format(" -n '__mailroom_at \"{}\"'", command.path);
  std::string text;
  for (const auto& sub : command.commands) {
    text += fmt::format("complete -c mailroom{} -a {} -d {}\n", condition, sub.name, in_quotes(sub.summary));
  }
  for (const auto& option : place.options)
    text += fish_option(option, condition);
  if (!command.operands.empty()) {
    const auto values = values_of(command.operands.front().value);
    if (!values.empty()) text += "complete -c mailroom" + condition + values + "\n";
  }
  return text;
}

}  // namespace

std::string render_fish_completion(const CommandReference& program) {
  auto text = fish_head + render_predicates(program) + "complete -c mailroom -f\n";
  for (const auto& option : program.options)
    text += fish_option(option, "");
  for (const auto& place : places_of(program))
    text += fish_place(place);
  return text;
}

}  // namespace mailroom::cmd
