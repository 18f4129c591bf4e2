#pragma once

#include <charconv>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "config/settings.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mailroom {

/// Both ends count.
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

/// What may stand for a value, and what it means.
template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

/// One option or operand that a command was given.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required();
  Option& needs(const Option& other);
  Option& excludes(const Option& other);
  /// May stand without its value, and then means `text`.
  Option& value_optional(const std::string& text);
  /// May be given several times; an operand may have several values.
  Option& repeated();
  Option& described(const std::string& help);
  /// Overrides this configuration key, whose values completions and man pages know.
  Option& stands_for(const std::string& key);
  /// Completions offer these words, and the man page lists them.
  Option& offers(const std::vector<std::string>& words);
  /// Under which title the help lists it.
  Option& in_group(const std::string& title);

 private:
  CLI::Option* option_;
};

/// Describes what one command takes. Parsing stores each value in the variable that was named for it, which
/// must outlive the parser; only then does the command run.
///
/// `spec` is how the help shows an option, its value behind a blank: `-n,--lines N`, `--watch [INTERVAL]`; a
/// name without a hyphen is an operand. Completions offer files for FILE, directories for DIR and FOLDER. An
/// empty value is refused, as is one that does not fit: Error(usage), naming the option. A later option
/// overrides an earlier one.
///
/// This is all that a command sees of CLI11, whose headers take seconds to compile.
class CommandSyntax {
 public:
  CommandSyntax(CLI::App& app, Overrides& overrides) : app_(&app), overrides_(&overrides) {}

  Option flag(const std::string& spec, bool& value, const std::string& help);

  Option text(const std::string& spec, std::string& value, const std::string& help);
  Option text(const std::string& spec, std::optional<std::string>& value, const std::string& help);

  /// One text for each time that it is given. With `separator`, each is split at it.
  Option texts(const std::string& spec, std::vector<std::string>& values, const std::string& help,
               std::optional<char> separator = std::nullopt);

  /// A number within `range`, which is not negative: whole, or with decimals where Number has them.
  template <typename Number, typename Target>
  Option number(const std::string& spec, Target& target, Range<Number> range, const std::string& help) {
    return value(spec, help, [&target, range, name = name_of(spec)](const std::string& text) {
      Number number{};
      const auto* end = text.data() + text.size();
      const auto [rest, failure] = std::from_chars(text.data(), end, number);
      // A NaN fits no range.
      const bool fits = number >= range.min && number <= range.max;
      if (failure != std::errc() || rest != end || !fits) refuse(name, text, requirement(range));
      target = number;
    });
  }

  /// A duration within `range`, with its unit: who types a bare number means seconds as often as
  /// milliseconds.
  Option duration(const std::string& spec, std::optional<Milliseconds>& value, Range<Milliseconds> range,
                  const std::string& help);

  /// One of few values; `listed` names them as a refusal does: `text or json`. It is the help, too.
  template <typename Value>
  Option choice(const std::string& spec, Value& target, const Choices<Value>& choices,
                const std::string& listed) {
    std::vector<std::string> names;
    for (const auto& choice : choices)
      names.push_back(choice.first);
    const auto store = [&target, choices, listed, name = name_of(spec)](const std::string& text) {
      for (const auto& [word, meaning] : choices) {
        if (word != text) continue;
        target = meaning;
        return;
      }
      refuse(name, text, listed);
    };
    return value(spec, listed, store).offers(names);
  }

  /// --action, by which a command takes tokens of one action alone; `action` becomes the database's name of
  /// it.
  Option action(std::string& action, const std::string& help);

  /// Overrides the configuration key `key`.
  Option setting(const std::string& spec, const std::string& key, const std::string& help);

  /// Stores a value by `store`, which throws Error(usage) for one that does not fit.
  Option value(const std::string& spec, const std::string& help,
               const std::function<void(const std::string&)>& store);

  /// A command of this command, which takes the options of this one as well; `on_use` is called when it is
  /// given.
  CommandSyntax command(const std::string& name, const std::string& summary,
                        const std::function<void()>& on_use);
  /// Nothing can be done without one of its commands.
  void needs_command();

  /// The options of this command that were given, by their longest name, but for --help.
  std::vector<std::string> given() const;

 private:
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
  Overrides* overrides_;
};

}  // namespace mailroom
