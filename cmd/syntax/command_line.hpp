// The whole command line as CLI11 sees it, for the parser and for the reference.
#pragma once

#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "cmd/command.hpp"

namespace mailroom::cmd {

/// Lays out --help with the examples first. Lines are wrapped to the width of the terminal, up to 120
/// columns, or to 80 without a terminal; examples are not wrapped.
class ExamplesFirst final : public CLI::Formatter {
 public:
  ExamplesFirst();
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override;
  /// The placeholder of the value only, without its type; the usage line shows whether it is required.
  std::string make_option_opts(const CLI::Option* option) const override;
  /// The notes only: make_help() puts the examples first.
  std::string make_footer(const CLI::App* app) const override;
};

/// The commands whose options are described to CLI11: all, or the one that the parser meets, which saves a
/// third of a short command under the sanitizers. The others are then a name and a summary.
enum class Described { all, met };

/// Every command and option as described to CLI11, and the variables in which parsing stores values. The
/// constructor parses nothing: `app` can also be read as a description.
struct CommandLine {
  explicit CommandLine(Described described = Described::all);
  // The callbacks of `app` refer to the members.
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  GlobalOptions global;
  config::Overrides overrides;
  CLI::App app;
  std::vector<std::pair<CLI::App*, Run>> runs;  ///< a described command, and the function that runs it

 private:
  void add_command(const Command& command, const char* group, Described described);
};

/// The command as typed: `mailroom migrate`.
std::string path_of(const CLI::App& app);

/// The DESCRIPTION of the program's man page: paragraphs separated by empty lines.
extern const char* const program_description;

}  // namespace mailroom::cmd
