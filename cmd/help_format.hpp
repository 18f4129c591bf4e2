#pragma once

#include <CLI/CLI.hpp>

namespace mailroom {

/// Lays out --help with the examples first: they are what a reader looks for.
class ExamplesFirst final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  /// What stands for the value, and nothing of its type or its being required: the usage line says that.
  std::string make_option_opts(const CLI::Option* option) const override;
  /// The footer holds the examples, which stand at the top.
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace mailroom
