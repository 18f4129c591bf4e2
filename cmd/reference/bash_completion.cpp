// Writes the completion for bash: a fixed script, and the words that fit each place.

#include <fmt/format.h>

#include "base/text.hpp"
#include "cmd/reference/generated_files.hpp"

namespace mailroom::cmd {
namespace {

constexpr const char* bash_head =
    R"(# bash completion for mailroom, generated from its command-line definitions

)";

constexpr const char* tail = R"(
# Completes the word $2 with the candidates that $1 describes, each with the prefix $3 if given.
_mailroom_offer() {
  case $1 in
    @text) ;;
    @file) compopt -o default ;;
    @directory) compopt -o dirnames ;;
    *) mapfile -t COMPREPLY < <(compgen -P "${3-}" -W "$1" -- "$2") ;;
  esac
}

_mailroom() {
  local commands options operand values place=mailroom pending='' glued='' prefix='' words=() word current i
  COMPREPLY=()
  if [[ ${COMP_WORDS[COMP_CWORD - 1]} == *[\<\>]* ]]; then
    compopt -o default
    return
  fi
  # bash splits words at = and :, so join the parts of each typed word again.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ ${#words[@]} -gt 0 && (-n $glued || $word == [=:]*) ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    glued=''
    if [[ $word =~ ^[=:]+$ ]]; then glued=yes; fi
  done
  current=${words[-1]}
  unset 'words[-1]'
  for word in "${words[@]}"; do
    if [[ -n $pending ]]; then
      pending=''
    elif [[ $word == --*=* ]]; then
      :
    elif [[ $word == -* ]]; then
      if _mailroom_values "$place" "$word"; then pending=$word; fi
    else
      _mailroom_place "$place"
      if [[ " $commands " == *" $word "* ]]; then place+=" $word"; fi
    fi
  done
  _mailroom_place "$place"
  if [[ -n $pending ]]; then
    _mailroom_values "$place" "$pending"
    _mailroom_offer "$values" "$current"
  elif [[ $current == --*=* ]]; then
    # bash completes only the part after the =, unless COMP_WORDBREAKS lacks it.
    if [[ $COMP_WORDBREAKS != *=* ]]; then prefix=${current%%=*}=; fi
    if _mailroom_values "$place" "${current%%=*}"; then
      _mailroom_offer "$values" "${current#*=}" "$prefix"
    fi
  elif [[ $current == -* ]]; then
    _mailroom_offer "$options" "$current"
  else
    _mailroom_offer "${commands:-${operand:-$options}}" "$current"
  fi
}

complete -F _mailroom mailroom
)";

std::string kind_of(const ValueReference& value) {
  switch (value.kind) {
    case ValueReference::Kind::choice:
      return "'" + joined(value.choices) + "'";
    case ValueReference::Kind::file:
      return "@file";
    case ValueReference::Kind::directory:
      return "@directory";
    default:
      return "@text";
  }
}

std::string bash_place(const Place& place) {
  const auto& command = *place.command;
  std::string text = fmt::format("    '{}')\n", command.path);
  std::vector<std::string> commands;
  for (const auto& sub : command.commands)
    commands.push_back(sub.name);
  if (!commands.empty()) text += fmt::format("      commands='{}'\n", joined(commands));
  if (!place.options.empty()) text += fmt::format("      options='{}'\n", joined(names_of(place.options)));
  if (!command.operands.empty()) {
    text += fmt::format("      operand={}\n", kind_of(command.operands.front().value));
  }
  return text + "      ;;\n";
}

std::string render_places(const CommandReference& program) {
  std::string text =
      "# Sets commands and options to those of the command $1, given as its path, and operand to what else "
      "is\n"
      "# allowed there: a list of words, @file, @directory, @text, or nothing.\n"
      "_mailroom_place() {\n"
      "  commands='' options='' operand=''\n"
      "  case $1 in\n";
  for (const auto& place : places_of(program))
    text += bash_place(place);
  return text + fmt::format("  esac\n  options+=' {}'\n}}\n\n", joined(names_of(program.options)));
}

std::string render_values(const CommandReference& program) {
  std::string text =
      "# Sets values to what may follow the option $2 of the command $1: a list of words, @file, @directory "
      "or\n"
      "# @text. Fails for an option without a value.\n"
      "_mailroom_values() {\n"
      "  case \"$1 $2\" in\n";
  for (const auto& [path, option] : valued_options(program)) {
    std::vector<std::string> patterns;
    for (const auto& name : option.names)
      patterns.push_back((path == "*" ? "*' " : "'" + path + " ") + name + "'");
    text += fmt::format("    {}) values={} ;;\n", joined(patterns, " | "), kind_of(option.value));
  }
  return text + "    *) return 1 ;;\n  esac\n}\n";
}

}  // namespace

std::string render_bash_completion(const CommandReference& program) {
  return bash_head + render_places(program) + render_values(program) + tail;
}

}  // namespace mailroom::cmd
