#pragma once

#include <string>
#include <vector>

#include "cmd/example.hpp"
#include "config/key_table.hpp"

namespace mailroom {

/// What may be typed where a value is expected.
struct ValueReference {
  enum class Kind { none, text, choice, file, folder };
  Kind kind = Kind::none;
  std::string name;                  ///< what stands for it: `FILE`; empty for none
  std::vector<std::string> choices;  ///< of a choice
  bool optional = false;             ///< the option may also stand without it
};

struct OptionReference {
  std::vector<std::string> names;  ///< as typed, the short ones first: `-o`, `--output`
  std::string help;
  ValueReference value;           ///< none for a flag
  const KeyEntry* key = nullptr;  ///< of the configuration, which it overrides; null for most
};

/// An argument that is no option.
struct OperandReference {
  std::string help;
  ValueReference value;
  bool required = false;
  bool repeated = false;
};

/// A command, the program itself included, with the commands that it has.
struct CommandReference {
  std::string name;
  std::string path;  ///< `mailroom migrate down`
  std::string summary;
  std::string description;  ///< paragraphs with an empty line between them; empty for a command of a command
  ExampleText examples;     ///< likewise
  std::vector<OptionReference> options;  ///< its own but for --help; it takes those above it as well
  std::vector<OperandReference> operands;
  std::vector<CommandReference> commands;
  bool needs_command = false;
};

/// All of the program, as its command line is defined.
CommandReference read_reference();

/// `command` and, in this order, every command below it.
std::vector<const CommandReference*> flatten(const CommandReference& command);

/// A place in a command line: behind the words of `command->path`.
struct Place {
  const CommandReference* command;
  /// Of the command and those above it, but for the program, whose options are taken everywhere.
  std::vector<const OptionReference*> options;
};

/// Every place there is, the program itself first.
std::vector<Place> places_of(const CommandReference& program);

}  // namespace mailroom
