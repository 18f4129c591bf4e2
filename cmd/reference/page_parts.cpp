#include "cmd/reference/page_parts.hpp"

#include <fmt/format.h>

#include "base/exit_codes.hpp"
#include "cmd/reference/words.hpp"

namespace mailroom {
namespace {

std::string usage(const OperandReference& operand) {
  const auto name = roff_italic(operand.value.name) + (operand.repeated ? "..." : "");
  return operand.required ? name : "[" + name + "]";
}

std::string tag(const OptionReference& option) {
  std::vector<std::string> names;
  for (const auto& name : option.names)
    names.push_back(roff_bold(name));
  const auto& value = option.value.name;
  return joined(names, ", ") + (value.empty() ? "" : " " + roff_italic(value));
}

/// The key and the variable that the option overrides.
std::string setting_of(const KeyEntry& key) {
  const auto variable =
      key.environment.empty() ? std::string() : fmt::format(" and {}", roff_bold(key.environment));
  return fmt::format("Overrides {}{}.", roff_bold(key.key), variable);
}

/// Appends a colon, except to a question.
std::string with_colon(const std::string& text) {
  return text.ends_with('?') ? text : text + ":";
}

void add_usage(ManPage& page, const CommandReference& command) {
  auto line = roff_bold(command.path) + " [" + roff_italic("OPTION") + "]...";
  for (const auto& operand : command.operands)
    line += " " + usage(operand);
  page.line(line);
}

}  // namespace

void add_name(ManPage& page, const std::string& name, const std::string& summary) {
  page.section("NAME");
  page.line(roff_escaped(name) + " \\- " + roff_escaped(summary));
}

void add_synopsis(ManPage& page, const CommandReference& command) {
  page.section("SYNOPSIS");
  bool first = true;
  for (const auto* way : flatten(command)) {
    if (way->needs_command) continue;
    if (!first) page.line_break();
    first = false;
    add_usage(page, *way);
  }
}

void add_examples(ManPage& page, const std::vector<Example>& examples) {
  page.section("EXAMPLES");
  for (const auto& example : examples) {
    if (!example.purpose.empty()) page.paragraph(roff_escaped(with_colon(example.purpose)));
    page.verbatim(example.command);
  }
}

void add_notes(ManPage& page, const std::string& notes) {
  if (notes.empty()) return;
  page.section("NOTES");
  page.verbatim(notes);
}

void add_arguments(ManPage& page, const CommandReference& command) {
  for (const auto& operand : command.operands)
    page.item(roff_italic(operand.value.name), roff_escaped(operand.help));
  for (const auto& option : command.options) {
    page.item(tag(option), roff_escaped(option.help));
    if (option.key != nullptr) page.item_goes_on(setting_of(*option.key));
  }
}

void add_exit_statuses(ManPage& page, bool with_remedies) {
  page.section("EXIT STATUS");
  page.set_item_distance(with_remedies);
  for (const auto& [status, meaning, fix] : exit_statuses()) {
    page.item(roff_bold(status), roff_escaped(meaning));
    if (with_remedies && !fix.empty()) page.item_goes_on(roff_escaped(fix));
  }
  page.set_item_distance(true);
}

std::string page_name(const std::string& name, int section) {
  return fmt::format("{}({})", roff_bold(name), section);
}

}  // namespace mailroom
