// Writes the completion for zsh: a function for each command, which calls _arguments.

#include <fmt/format.h>

#include "base/text.hpp"
#include "cmd/reference/generated_files.hpp"

namespace mailroom::cmd {
namespace {

std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string action_of(const ValueReference& value) {
  switch (value.kind) {
    case ValueReference::Kind::choice:
      return "(" + joined(value.choices) + ")";
    case ValueReference::Kind::file:
      return "_files";
    case ValueReference::Kind::directory:
      return "_files -/";
    default:
      // A message without candidates.
      return " ";
  }
}

/// `:NAME:action` for a value.
std::string expectation(const ValueReference& value) {
  return ":" + with_backslashes(value.name, ":") + ":" + action_of(value);
}

/// A specification for _arguments. Each name of an option excludes the others.
std::string zsh_option(const OptionReference& option) {
  const bool has_value = option.value.kind != ValueReference::Kind::none;
  std::vector<std::string> names;
  for (const auto& name : option.names) {
    const bool is_long = name.starts_with("--");
    names.push_back(name + (!has_value ? "" : is_long ? "=" : "+"));
  }
  auto rest = "[" + with_backslashes(option.help, "[]\\:") + "]";
  if (has_value) rest += (option.value.optional ? ":" : "") + expectation(option.value);
  if (names.size() == 1) return in_quotes(names.front() + rest);
  return in_quotes("(" + joined(option.names) + ")") + "{" + joined(names, ",") + "}" + in_quotes(rest);
}

std::string render_operand(const OperandReference& operand, std::size_t position) {
  const auto where = operand.repeated ? "*" : std::to_string(position) + (operand.required ? "" : ":");
  return in_quotes(where + expectation(operand.value));
}

std::string function_of(const CommandReference& command) {
  return "_" + with_dashes(command.path);
}

std::string render_dispatch(const CommandReference& command) {
  std::string text =
      "  case $state in\n"
      "    command)\n"
      "      local -a subcommands=(\n";
  for (const auto& sub : command.commands) {
    text += fmt::format("        {}\n", in_quotes(with_backslashes(sub.name, ":\\") + ":" + sub.summary));
  }
  return text + fmt::format(
                    "      )\n"
                    "      _describe -t commands 'command of {0}' subcommands && ret=0\n"
                    "      ;;\n"
                    "    rest)\n"
                    "      words=($line[1] \"${{words[@]}}\")\n"
                    "      (( CURRENT += 1 ))\n"
                    "      (( $+functions[{1}-$line[1]] )) && {1}-$line[1] && ret=0\n"
                    "      ;;\n"
                    "  esac\n",
                    command.path, function_of(command));
}

std::string render_function(const Place& place, const CommandReference& program) {
  const auto& command = *place.command;
  std::string text = function_of(command) + "() {\n";
  text += "  local curcontext=$curcontext state line ret=1\n  typeset -A opt_args\n";
  if (&command == &program) {
    text += "  local -a mailroom_global=(\n";
    for (const auto& option : program.options)
      text += "    " + zsh_option(option) + "\n";
    text += "  )\n";
  }
  // What follows the name of a command is for its function. Of two options of one name zsh takes the first:
  // that of the command.
  text += "  _arguments -C -s -S";
  if (!command.commands.empty()) text += " -A '-*'";
  for (const auto& option : place.options)
    text += " \\\n    " + zsh_option(option);
  text += " \\\n    \"${mailroom_global[@]}\"";
  std::size_t position = 0;
  for (const auto& operand : command.operands)
    text += " \\\n    " + render_operand(operand, ++position);
  if (!command.commands.empty()) text += " \\\n    '1: :->command' \\\n    '*::: :->rest'";
  text += " && ret=0\n";
  if (!command.commands.empty()) text += render_dispatch(command);
  return text + "  return ret\n}\n\n";
}

}  // namespace

std::string render_zsh_completion(const CommandReference& program) {
  std::string text =
      "#compdef mailroom\n# zsh completion for mailroom, generated from its command-line definitions\n\n";
  for (const auto& place : places_of(program))
    text += render_function(place, program);
  // Autoloaded as a function, the script runs the completion; read with source, it registers it.
  return text +
         "if [[ $funcstack[1] == _mailroom ]]; then\n"
         "  _mailroom \"$@\"\n"
         "else\n"
         "  compdef _mailroom mailroom\n"
         "fi\n";
}

}  // namespace mailroom::cmd
