#pragma once

#include <CLI/CLI.hpp>

namespace mailroom {

/// Lays out --help with the examples first: they are what a reader looks for. No line has more than 80
/// columns, but those of the examples, which are not broken.
class ExamplesFirst final : public CLI::Formatter {
 public:
  ExamplesFirst();
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override;
  /// What stands for the value, and nothing of its type or its being required: the usage line says that.
  std::string make_option_opts(const CLI::Option* option) const override;
  /// The notes: the examples above them stand at the top.
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace mailroom
