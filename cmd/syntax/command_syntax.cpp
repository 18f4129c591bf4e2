// Checks each value as it is parsed, and refuses a token where none is taken.

#include "cmd/syntax/command_syntax.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "cmd/syntax/command_line.hpp"
#include "cmd/syntax/subcommand_examples.hpp"
#include "config/key_table.hpp"

namespace mailroom::cmd {
namespace {

/// `--limit N` in its two parts; value_name is empty for a flag and for an operand.
struct Spec {
  std::string names;
  std::string value_name;

  explicit Spec(const std::string& spec) {
    const auto blank = spec.find(' ');
    names = spec.substr(0, blank);
    if (blank != std::string::npos) value_name = spec.substr(blank + 1);
  }

  bool is_operand() const { return names.front() != '-'; }
  /// True for a token, and for what stays on this machine, such as a path with a secret.
  bool may_hold_token() const {
    const auto& word = is_operand() ? names : value_name;
    return word == "TOKEN" || word == "URL" || word.starts_with("FILE") || word == "DIR" || word == "COMMAND";
  }
  /// `--limit` of `-l,--limit`
  std::string longest() const { return is_operand() ? names : names.substr(names.find("--")); }
};

/// A token is not sent to the server in place of what a command looks for: the server may log it.
void refuse_token(const std::string& name, const std::string& text) {
  if (text.starts_with("login:") || !holds_token(text)) return;
  throw Error(ExitCode::usage, name + " looks like a token or the secret of one, which it does not take",
              token_hint);
}

std::string help_of(const config::KeyEntry& entry, const config::KeyOption& option) {
  const bool lacks_default = !entry.default_text.empty() && !option.help.ends_with(']');
  return lacks_default ? fmt::format("{} [{}]", option.help, entry.default_text) : std::string(option.help);
}

std::vector<Example> parse_lines(std::string_view lines) {
  std::vector<Example> all;
  for (const auto line : split(lines, '\n')) {
    if (!line.starts_with("  ")) continue;
    const auto text = trimmed(line);
    const auto blanks = std::min(text.find("  "), text.size());
    all.push_back({std::string(text.substr(0, blanks)), std::string(trimmed(text.substr(blanks)))});
  }
  return all;
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::value_optional(const std::string& text) {
  option_->expected(0, 1)->default_str(text);
  return *this;
}

Option& Option::repeated() {
  option_->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (option_->get_positional()) {
    option_->expected(CLI::detail::expected_max_vector_size);
  } else {
    option_->allow_extra_args(false);
  }
  return *this;
}

Option& Option::with_several_values() {
  option_->expected(1, CLI::detail::expected_max_vector_size);
  option_->allow_extra_args(true);
  return *this;
}

// stands_for() and offers() store their data for the reference in the type name, which no help shows.

Option& Option::stands_for(const std::string& key) {
  option_->type_name(key);
  return *this;
}

Option& Option::offers(const std::vector<std::string>& words) {
  option_->type_name(fmt::format("{{{}}}", joined(words, ",")));
  return *this;
}

Option& Option::in_group(const std::string& title) {
  option_->group(title);
  return *this;
}

Option CommandSyntax::flag(const std::string& spec, bool& value, const std::string& help) {
  return Option(*app_->add_flag(spec, value, help));
}

Option CommandSyntax::value(const std::string& spec, const std::string& help,
                            const std::function<void(const std::string&)>& store) {
  return checked_value(spec, help, store, Spec(spec).may_hold_token());
}

Option CommandSyntax::checked_value(const std::string& spec, const std::string& help,
                                    const std::function<void(const std::string&)>& store, bool takes_token) {
  const Spec parts(spec);
  const std::string hint = parts.is_operand() ? "" : "omit it, or give it a value";
  const auto checked = [app = app_, name = parts.longest(), hint, takes_token,
                        store](const std::vector<std::string>& texts) {
    for (const auto& text : texts) {
      try {
        if (text.empty()) throw Error(ExitCode::usage, name + " is empty", hint);
        if (!takes_token) refuse_token(name, text);
        store(text);
      } catch (const Error& error) {
        if (!error.hint().empty()) throw;
        throw Error(error.code(), error.what(), path_of(*app) + " --help shows the options");
      }
    }
    return true;
  };
  auto* option = app_->add_option(parts.names, checked, help);
  option->type_name("");
  if (!parts.is_operand()) option->option_text(parts.value_name);
  return Option(*option);
}

Option CommandSyntax::text(const std::string& spec, std::string& value, const std::string& help) {
  return this->value(spec, help, [&value](const std::string& text) { value = text; });
}

Option CommandSyntax::text(const std::string& spec, std::optional<std::string>& value,
                           const std::string& help) {
  return this->value(spec, help, [&value](const std::string& text) { value = text; });
}

Option CommandSyntax::text_or_token(const std::string& spec, std::string& value, const std::string& help) {
  return checked_value(
      spec, help, [&value](const std::string& text) { value = text; }, true);
}

Option CommandSyntax::texts_or_tokens(const std::string& spec, std::vector<std::string>& values,
                                      const std::string& help) {
  return checked_value(
             spec, help, [&values](const std::string& text) { values.push_back(text); }, true)
      .repeated();
}

Option CommandSyntax::texts(const std::string& spec, std::vector<std::string>& values,
                            const std::string& help, std::optional<char> separator) {
  const auto store = [&values, separator](const std::string& text) {
    if (!separator) return values.push_back(text);
    for (const auto part : split(text, *separator))
      values.emplace_back(part);
  };
  return value(spec, help, store).repeated();
}

Option CommandSyntax::duration(const std::string& spec, std::optional<Milliseconds>& value,
                               Range<Milliseconds> range, const std::string& help) {
  const auto store = [&value, range, name = name_of(spec)](const std::string& text) {
    const bool has_unit = text == "0" || text.find_first_not_of("0123456789") != std::string::npos;
    const auto duration = has_unit ? parse_duration(text) : std::nullopt;
    if (!duration || *duration < range.min || *duration > range.max) {
      const auto longest = range.max == Milliseconds::max() ? "" : " to " + format_duration(range.max);
      throw Error(ExitCode::usage,
                  fmt::format("{} is '{}', and must be a duration from {}{}", name, text,
                              format_duration(range.min), longest.empty() ? " on" : longest),
                  has_unit ? "for example 250ms, 30s or 4m30s"
                           : fmt::format("give its unit: {0}s, {0}m or {0}ms", text));
    }
    value = *duration;
  };
  return this->value(spec, help, store);
}

std::vector<Option> CommandSyntax::settings(std::string_view command) {
  std::vector<Option> added;
  for (const auto& entry : config::key_table()) {
    for (const auto& option : entry.options) {
      const auto commands = split(option.commands, ' ');
      if (std::ranges::find(commands, command) == commands.end()) continue;
      const std::string key(entry.key);
      const std::string spec(option.spec);
      const auto store = [overrides = overrides_, name = name_of(spec), key](const std::string& text) {
        overrides->flags.push_back({key, text, name});
      };
      added.push_back(value(spec, help_of(entry, option), store).stands_for(key));
    }
  }
  return added;
}

CommandSyntax CommandSyntax::command(const std::string& name, const std::string& summary,
                                     const std::function<void()>& on_use) {
  app_->require_subcommand(app_->get_require_subcommand_min(), 1);
  auto* command = app_->add_subcommand(name, summary)->group("Commands");
  command->fallthrough()->callback(on_use);
  command->footer(subcommand_examples(path_of(*command)));
  return {*command, *overrides_};
}

void CommandSyntax::needs_command() {
  app_->require_subcommand(1);
}

std::vector<std::string> CommandSyntax::given() const {
  std::vector<std::string> names;
  for (const auto* option : app_->get_options()) {
    if (option->count() > 0 && option != app_->get_help_ptr()) names.push_back(option->get_name());
  }
  return names;
}

std::string CommandSyntax::name_of(const std::string& spec) {
  return Spec(spec).longest();
}

void CommandSyntax::refuse(const std::string& name, const std::string& text, const std::string& requirement) {
  throw Error(ExitCode::usage, fmt::format("{} is '{}', and must be {}", name, text, requirement));
}

std::string CommandSyntax::number_between(double min, double max) {
  return fmt::format("a number from {} to {}", min, max);
}

std::string CommandSyntax::whole_number_between(std::uint64_t min, std::uint64_t max) {
  // The largest integer of the machine is not worth showing.
  if (max >= std::numeric_limits<std::int64_t>::max()) return fmt::format("a whole number from {} on", min);
  return fmt::format("a whole number from {} to {}", min, max);
}

ExampleText parse_examples(std::string_view text) {
  const auto end = std::min(text.find("\n\n"), text.size());
  return {parse_lines(text.substr(0, end)), std::string(text.substr(std::min(end + 2, text.size())))};
}

}  // namespace mailroom::cmd
