// The command line as data, from which man pages and completions are written.
#pragma once

#include <string>
#include <vector>

#include "cmd/syntax/command_syntax.hpp"
#include "config/key_table.hpp"

namespace mailroom::cmd {

/// The value of an option or operand.
struct ValueReference {
  enum class Kind { none, text, choice, file, directory };
  Kind kind = Kind::none;
  std::string name;                  ///< the placeholder: `FILE`; empty for none
  std::vector<std::string> choices;  ///< of a choice
  bool optional = false;             ///< the option also works without a value
};

struct OptionReference {
  std::vector<std::string> names;  ///< as typed, the short ones first: `-o`, `--output`
  std::string help;
  ValueReference value;                   ///< none for a flag
  const config::KeyEntry* key = nullptr;  ///< the configuration key that it overrides; null for none

  /// True if a value must follow. With an optional value, the next word need not be the value.
  bool takes_next_word() const { return value.kind != ValueReference::Kind::none && !value.optional; }
};

/// A positional argument.
struct OperandReference {
  std::string help;
  ValueReference value;
  bool required = false;
  bool repeated = false;
};

/// A command or the program itself, with its subcommands.
struct CommandReference {
  std::string name;
  std::string path;  ///< `mailroom migrate down`
  std::string summary;
  std::string group;                     ///< the title under which the help lists it
  std::string description;               ///< paragraphs separated by empty lines; empty for a subcommand
  ExampleText examples;                  ///< empty for a subcommand
  std::vector<OptionReference> options;  ///< its own without --help; it also accepts those of its parents
  std::vector<OperandReference> operands;
  std::vector<CommandReference> commands;
  bool needs_command = false;

  bool is_program() const { return path == name; }
};

/// The whole program, from the definitions of its command line.
CommandReference read_reference();

/// A place in a command line: after the words of `command->path`.
struct Place {
  const CommandReference* command;
  /// Options of the command and its parents, except those of the program, which are accepted everywhere.
  std::vector<OptionReference> options;
};

/// `command`, followed by every command below it, in depth-first order.
std::vector<Place> places_of(const CommandReference& command);

/// The options that a value must follow, with the paths of their commands; `*` for those of the program,
/// which come last.
std::vector<std::pair<std::string, OptionReference>> valued_options(const CommandReference& program);

/// All names of `options`.
std::vector<std::string> names_of(const std::vector<OptionReference>& options);

/// `text` with a backslash before each character of `special`.
std::string with_backslashes(std::string_view text, std::string_view special);

/// `path` as one word: `mailroom-migrate-down`.
std::string with_dashes(std::string path);

}  // namespace mailroom::cmd
