#pragma once

#include <string>
#include <vector>

#include "cmd/syntax/example.hpp"
#include "config/key_table.hpp"

namespace mailroom {

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
  ValueReference value;           ///< none for a flag
  const KeyEntry* key = nullptr;  ///< the configuration key that it overrides; null for none
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
  std::string description;               ///< paragraphs separated by empty lines; empty for a subcommand
  ExampleText examples;                  ///< empty for a subcommand
  std::vector<OptionReference> options;  ///< its own without --help; it also accepts those of its parents
  std::vector<OperandReference> operands;
  std::vector<CommandReference> commands;
  bool needs_command = false;
};

/// The whole program, from the definitions of its command line.
CommandReference read_reference();

/// `command`, followed by every command below it, in depth-first order.
std::vector<const CommandReference*> flatten(const CommandReference& command);

/// A place in a command line: after the words of `command->path`.
struct Place {
  const CommandReference* command;
  /// Options of the command and its parents, except the program's, which are accepted everywhere.
  std::vector<const OptionReference*> options;
};

/// All places; the program itself comes first.
std::vector<Place> places_of(const CommandReference& program);

}  // namespace mailroom
