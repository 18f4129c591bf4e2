// Reads the definitions that CLI11 parses with, so that nothing is described twice.

#include "cmd/reference/reference.hpp"

#include <algorithm>

#include "cmd/command.hpp"
#include "cmd/syntax/command_line.hpp"

namespace mailroom::cmd {
namespace {

/// The names in `{a,b}`, which may follow a type; empty if there is no such list.
std::vector<std::string> choices_in(const std::string& type) {
  std::vector<std::string> choices;
  const auto open = type.find('{');
  const auto close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string name; std::getline(list, name, ',');)
    choices.push_back(name);
  return choices;
}

ValueReference read_value(const CLI::Option& option, const std::string& name, const config::KeyEntry* key) {
  using Kind = ValueReference::Kind;
  ValueReference value{.kind = Kind::text, .name = name, .choices = choices_in(option.get_type_name())};
  if (key != nullptr) value.choices.assign(key->target.choices.begin(), key->target.choices.end());
  if (!value.choices.empty()) {
    value.kind = Kind::choice;
  } else if (name == "FILE" || name == "FILE...") {
    value.kind = Kind::file;
  } else if (name == "DIRECTORY" || name == "DIR") {
    value.kind = Kind::directory;
  }
  return value;
}

OptionReference read_option(const CLI::Option& option) {
  OptionReference entry;
  entry.help = option.get_description();
  entry.key = config::find_key(option.get_type_name());
  for (const auto& name : option.get_snames())
    entry.names.push_back("-" + name);
  for (const auto& name : option.get_lnames())
    entry.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) {
    const auto& name = option.get_option_text();
    entry.value = read_value(option, name.empty() ? "VALUE" : name, entry.key);
    entry.value.optional = option.get_items_expected_min() == 0;
  }
  return entry;
}

OperandReference read_operand(const CLI::Option& option) {
  const auto name = option.get_name(true, false);
  return {.help = option.get_description(),
          .value = read_value(option, name, nullptr),
          .required = option.get_required(),
          .repeated = option.get_expected_max() > 1};
}

CommandReference read_command(const CLI::App& app, const std::string& path_above) {
  CommandReference command;
  command.name = app.get_name();
  command.path = path_above + app.get_name();
  command.summary = app.get_description();
  command.group = app.get_group();
  command.needs_command = app.get_require_subcommand_min() > 0;
  const bool is_program = app.get_parent() == nullptr;
  for (const auto* option : app.get_options()) {
    // Describe --help once, for the program.
    if (option->get_group().empty() || (!is_program && option == app.get_help_ptr())) continue;
    if (option->get_positional()) {
      command.operands.push_back(read_operand(*option));
    } else {
      command.options.push_back(read_option(*option));
    }
  }
  for (const auto* sub : app.get_subcommands({}))
    command.commands.push_back(read_command(*sub, command.path + " "));
  return command;
}

void add_places(const CommandReference& command, std::vector<OptionReference> options,
                std::vector<Place>& places) {
  if (!command.is_program()) options.insert(options.end(), command.options.begin(), command.options.end());
  places.push_back({&command, options});
  for (const auto& sub : command.commands)
    add_places(sub, options, places);
}

}  // namespace

CommandReference read_reference() {
  const CommandLine line;
  auto program = read_command(line.app, "");
  program.description = program_description;
  program.examples = parse_examples(line.app.get_footer());
  for (const auto& command : commands()) {
    const auto entry =
        std::ranges::find(program.commands, std::string(command.name), &CommandReference::name);
    entry->description = command.description;
    entry->examples = parse_examples(command.examples);
  }
  return program;
}

std::vector<Place> places_of(const CommandReference& command) {
  std::vector<Place> places;
  add_places(command, {}, places);
  return places;
}

std::vector<std::pair<std::string, OptionReference>> valued_options(const CommandReference& program) {
  auto places = places_of(program);
  places.push_back({nullptr, program.options});
  std::vector<std::pair<std::string, OptionReference>> all;
  for (const auto& [command, options] : places) {
    for (const auto& option : options) {
      if (option.takes_next_word()) all.emplace_back(command == nullptr ? "*" : command->path, option);
    }
  }
  return all;
}

std::string with_backslashes(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string with_dashes(std::string path) {
  std::ranges::replace(path, ' ', '-');
  return path;
}

std::vector<std::string> names_of(const std::vector<OptionReference>& options) {
  std::vector<std::string> names;
  for (const auto& option : options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

}  // namespace mailroom::cmd
