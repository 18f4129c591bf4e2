#pragma once

#include <CLI/CLI.hpp>
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
