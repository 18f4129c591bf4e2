#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <memory>

#include "cmd/context.hpp"

namespace mailroom {

/// Does the work of a parsed command and says how it ended.
using Run = std::function<ExitCode(Context&)>;

/// A subcommand: `add` describes its options to CLI11, which only stores them, and returns what runs with
/// them. Options that are configuration go to `overrides` instead.
struct Command {
  const char* name;
  const char* summary;
  const char* examples;  ///< the first thing that --help shows
  Run (*add)(CLI::App& app, Overrides& overrides);
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

/// Adds an option whose value overrides the configuration key `key`.
inline CLI::Option* add_setting(CLI::App& app, Overrides& overrides, const std::string& flag,
                                const std::string& key, const std::string& help) {
  return app
      .add_option_function<std::string>(
          flag,
          [&overrides, flag, key](const std::string& text) {
            overrides.flags.push_back({key, text, flag});
          },
          help)
      ->option_text("VALUE");
}

}  // namespace mailroom
