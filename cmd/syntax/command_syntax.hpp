// How commands describe their options and operands, without the headers of CLI11.
#pragma once

#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "config/settings.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mailroom::cmd {

/// A command line that works as typed, and its purpose.
struct Example {
  std::string command;
  std::string purpose;  ///< may be empty
};

/// The contents of `Command::examples`: a title, then one example per line, its purpose after at least two
/// spaces; then, after an optional empty line, the notes.
struct ExampleText {
  std::vector<Example> examples;
  std::string notes;
};

ExampleText parse_examples(std::string_view text);

/// Both ends are inclusive.
template <typename Value>
struct Range {
  Value min;
  Value max = std::numeric_limits<Value>::max();
};
template <>
struct Range<Milliseconds> {
  Milliseconds min;
  Milliseconds max;
};

/// One option or operand of a command.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required();
  Option& needs(const Option& other);
  Option& excludes(const Option& other);
  /// Makes the value optional; without a value the option means `text`.
  Option& value_optional(const std::string& text);
  /// Allows the option several times, or several values of an operand.
  Option& repeated();
  /// Lets a repeated option take several values each time, as a shell expands `*.csv`. The command must have
  /// no operand, which the option would take too.
  Option& with_several_values();
  /// Names the configuration key that the option overrides, for completions and man pages.
  Option& stands_for(const std::string& key);
  /// Sets the values that completions offer and the man page lists.
  Option& offers(const std::vector<std::string>& words);
  /// Sets the title under which the help lists the option.
  Option& in_group(const std::string& title);

 private:
  CLI::Option* option_;
};

class CommandSyntax;

/// A command below another one, in a table of them.
template <typename Options, typename... Arguments>
struct Subcommand {
  const char* name;
  const char* summary;
  ExitCode (*run)(const Options& options, Arguments... arguments);
  void (*add)(CommandSyntax& syntax, Options& options);  ///< its options; may be null
};

/// Describes the options and operands of one command. Parsing stores each value in the given variable, which
/// must outlive the parser; the command runs afterwards.
///
/// `spec` is the option as the help shows it, its value after a blank: `-n,--lines N`, `--watch [INTERVAL]`.
/// A name without a hyphen is an operand. Completions offer files for FILE, directories for DIR and
/// DIRECTORY. For an empty or invalid value parsing throws Error(usage), which names the option. A later
/// option overrides an earlier one.
///
/// Hides CLI11 from the commands: its headers take seconds to compile.
class CommandSyntax {
 public:
  CommandSyntax(CLI::App& app, config::Overrides& overrides) : app_(&app), overrides_(&overrides) {}

  Option flag(const std::string& spec, bool& value, const std::string& help);

  Option text(const std::string& spec, std::string& value, const std::string& help);
  Option text(const std::string& spec, std::optional<std::string>& value, const std::string& help);

  /// As text(), for a value that may be a signed token; other options and operands refuse one.
  Option text_or_token(const std::string& spec, std::string& value, const std::string& help);

  /// The same, for an operand that may be given several times.
  Option texts_or_tokens(const std::string& spec, std::vector<std::string>& values, const std::string& help);

  /// Collects the texts of all occurrences. With `separator`, each text is split at it.
  Option texts(const std::string& spec, std::vector<std::string>& values, const std::string& help,
               std::optional<char> separator = std::nullopt);

  /// A number within `range`, which is not negative. Decimals are accepted if Number is a floating-point
  /// type.
  template <typename Number, typename Target>
  Option number(const std::string& spec, Target& target, Range<Number> range, const std::string& help) {
    return value(spec, help, [&target, range, name = name_of(spec)](const std::string& text) {
      const auto number = parse_number<Number>(text);
      // A NaN fits no range.
      const bool fits = number && *number >= range.min && *number <= range.max;
      if (!fits) refuse(name, text, requirement(range));
      target = *number;
    });
  }

  /// A duration within `range`. Its unit is required: a bare number could mean seconds or milliseconds.
  Option duration(const std::string& spec, std::optional<Milliseconds>& value, Range<Milliseconds> range,
                  const std::string& help);

  /// One of `choices`. `listed` names them in the error message: `text or json`.
  template <typename Value>
  Option choice(const std::string& spec, Value& target, const config::Choices<Value>& choices,
                const std::string& listed, const std::string& help) {
    const auto store = [&target, choices, listed, name = name_of(spec)](const std::string& text) {
      for (const auto& [word, meaning] : choices) {
        if (word != text) continue;
        target = meaning;
        return;
      }
      refuse(name, text, listed);
    };
    return value(spec, help, store).offers(config::names_of(choices));
  }

  /// Adds the options that the key table has for `command`, each of which overrides a key; those of an empty
  /// text are global.
  std::vector<Option> settings(std::string_view command);

  /// Passes the value to `store`, which throws Error(usage) if it is invalid. Refuses what has the shape of a
  /// token, unless the value is a TOKEN, URL, FILE, DIR or COMMAND.
  Option value(const std::string& spec, const std::string& help,
               const std::function<void(const std::string&)>& store);

  /// Adds a command below this one, which also takes the options of this one. Parsing calls `on_use` if it is
  /// given.
  CommandSyntax command(const std::string& name, const std::string& summary,
                        const std::function<void()>& on_use);
  /// Makes one of the commands below this one mandatory.
  void needs_command();
  /// Adds each of `subcommands`, a table that lives as long as the program, with the options that it stores
  /// in `options`; one of them is mandatory. Returns where parsing leaves the one that was typed.
  template <typename Options, typename Table>
  auto commands(const Table& subcommands, Options& options) {
    using Each = std::remove_cvref_t<decltype(*std::begin(subcommands))>;
    auto chosen = std::make_shared<const Each*>(nullptr);
    needs_command();
    for (const auto& each : subcommands) {
      auto syntax = command(each.name, each.summary, [&each, chosen] { *chosen = &each; });
      if (each.add != nullptr) each.add(syntax, options);
    }
    return chosen;
  }

  /// The longest names of the options of this command that were given, except --help.
  std::vector<std::string> given() const;

 private:
  Option checked_value(const std::string& spec, const std::string& help,
                       const std::function<void(const std::string&)>& store, bool takes_token);
  static std::string name_of(const std::string& spec);
  [[noreturn]] static void refuse(const std::string& name, const std::string& text,
                                  const std::string& requirement);
  template <typename Number>
  static std::string requirement(const Range<Number>& range) {
    if constexpr (std::is_floating_point_v<Number>) return number_between(range.min, range.max);
    return whole_number_between(static_cast<std::uint64_t>(range.min), static_cast<std::uint64_t>(range.max));
  }
  static std::string number_between(double min, double max);
  static std::string whole_number_between(std::uint64_t min, std::uint64_t max);

  CLI::App* app_;
  config::Overrides* overrides_;
};

}  // namespace mailroom::cmd
