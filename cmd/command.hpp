#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cmd/context.hpp"

namespace mailroom {

/// Does the work of a parsed command and says how it ended.
using Run = std::function<ExitCode(Context&)>;

/// A subcommand: `add` describes its options to CLI11, which only stores them, and returns what runs with
/// them. Options that are configuration go to `overrides` instead.
struct Command {
  const char* name;
  const char* summary;
  const char* examples;  ///< the first thing that --help shows, and notes, the last one: see ExampleText
  Run (*add)(CLI::App& app, Overrides& overrides);
  /// What the man page says beyond the help: paragraphs of plain text with an empty line between them.
  const char* description = "";
};

/// Stands before an argument that is a token beginning with a hyphen, so that it does not pass for an option.
constexpr char token_mark = '\x01';

/// Accepts a whole number from `low` to `high`. (CLI::Range converts first, and so takes -1 for a large one.)
template <typename Number>
CLI::Validator whole_number(Number low, Number high) {
  const auto check = [low, high](const std::string& text) -> std::string {
    Number number{};
    const auto* end = text.data() + text.size();
    const auto [rest, failure] = std::from_chars(text.data(), end, number);
    if (failure == std::errc() && rest == end && number >= low && number <= high) return {};
    return fmt::format("{} is not a whole number from {} to {}", text, low, high);
  };
  return {check, "", ""};
}

// An option's type name, which no help shows, says what its value may be: a configuration key stands for the
// values of that key, `{a,b}` (as CLI::IsMember has it) for these. Completions and man pages go by it, and by
// the option's text: FILE and FOLDER are completed as such.

/// Adds an option whose value overrides the configuration key `key`.
CLI::Option* add_setting(CLI::App& app, Overrides& overrides, const std::string& flag, const std::string& key,
                         const std::string& help);

template <typename T>
using Choices = std::vector<std::pair<std::string, T>>;

/// `{text,json}`
template <typename T>
std::string choices_type(const Choices<T>& choices) {
  std::string names;
  for (const auto& [name, value] : choices)
    names += (names.empty() ? "" : ",") + name;
  return "{" + names + "}";
}

/// Adds an option with few values, which `help` names in a list such as `text or json`, as a refusal does.
template <typename T>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, T& value, const Choices<T>& choices,
                        const std::string& help) {
  const auto store = [&value, flag, choices, help](const std::string& text) {
    const auto choice =
        std::find_if(choices.begin(), choices.end(), [&](const auto& entry) { return entry.first == text; });
    if (choice == choices.end()) {
      throw CLI::ValidationError(
          fmt::format("{} is '{}', and must be {}", flag.substr(flag.find("--")), text, help));
    }
    value = choice->second;
  };
  return app.add_option_function<std::string>(flag, store, help)->type_name(choices_type(choices));
}

/// Adds --action, by which a command takes tokens of one action alone; `value` becomes the database's name of
/// it.
CLI::Option* add_action(CLI::App& app, std::string& value);

}  // namespace mailroom
