// mailroom config: every setting with its value and origin, and whether collect and send could start.

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "cmd/command.hpp"
#include "cmd/config/shown_setting.hpp"
#include "cmd/send/send_setup.hpp"
#include "db/conninfo.hpp"

namespace mailroom::cmd {
namespace {

enum class ConfigAction { show, check };

/// Those of every profile, and of every role that submits, follow the others.
std::vector<config::SettingValue> all_values(const config::Settings& settings) {
  auto values = settings.values;
  for (const auto& profile : settings.profiles) {
    std::ranges::copy_if(profile.values, std::back_inserter(values), [](const auto& value) {
      return value.origin.kind != config::OriginKind::default_value;
    });
  }
  for (const auto& role : settings.submission_roles)
    std::ranges::copy(role.values, std::back_inserter(values));
  return values;
}

std::string settings_text(const config::Settings& settings) {
  const auto values = all_values(settings);
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  for (const auto& value : values) {
    key_width = std::max(key_width, value.name().size());
    // A value longer than 30 columns shifts only its own origin.
    if (const auto size = printable(shown(value)).size(); size <= 30)
      value_width = std::max(value_width, size);
  }
  std::string text;
  for (const auto& value : values) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", value.name(), key_width, printable(shown(value)), value_width,
                        printable(value.origin.where));
  }
  return text;
}

std::string settings_json(const config::Settings& settings) {
  nlohmann::ordered_json object;
  for (const auto& value : all_values(settings)) {
    object[value.name()] = {{"value", shown(value)}, {"origin", value.origin.where}};
  }
  return json_text(object) + "\n";
}

ExitCode run_show(Context& context) {
  const auto& settings = context.settings();
  const bool json = context.global().output == OutputFormat::json;
  context.print(json ? settings_json(settings) : settings_text(settings));
  return ExitCode::done;
}

ExitCode run_check(Context& context) {
  const auto& settings = context.settings();
  db::parse_conninfo(db::configured_database(settings).conninfo);
  const auto ring = signing::load_key_ring(settings);
  check_send_settings(settings, context.log());
  const auto fingerprint = ring.current.fingerprint();
  if (context.global().output == OutputFormat::json) {
    const nlohmann::ordered_json object{
        {"valid", true}, {"key", fingerprint}, {"previous_keys", ring.previous.size()}};
    context.print(json_text(object) + "\n");
  } else {
    context.print(
        fmt::format("valid: signing with key {}, {} previous\n", fingerprint, ring.previous.size()));
  }
  return ExitCode::done;
}

Run add_config(CommandSyntax& syntax) {
  auto action = std::make_shared<ConfigAction>(ConfigAction::show);
  syntax.needs_command();
  syntax.command("show", "show every key, its effective value and its origin",
                 [action] { *action = ConfigAction::show; });
  syntax.command("check", "read configuration and keys as collect and send do; exit code 3 on an error",
                 [action] { *action = ConfigAction::check; });
  return [action](Context& context) {
    return *action == ConfigAction::show ? run_show(context) : run_check(context);
  };
}

}  // namespace

const Command config_command{
    "config", "show or check the effective configuration",
    "Examples:\n"
    "  mailroom config show       show every value and its origin\n"
    "  mailroom config check      check that collect, or send, could start\n",
    add_config,
    "Shows or checks the configuration that every command uses. Command-line options override environment "
    "variables, variables override the configuration file, and the file overrides the defaults. show "
    "prints each key with its effective value and its origin: an option, a variable, the file with line "
    "and column, or the default. Keys are masked, and so is the password in a connection string.\n\n"
    "check reads configuration and keys as collect does at its start, without connecting to the "
    "database; where send.relay is set, also what send needs: relays, passwords, the sender, the link and the "
    "templates. It prints the fingerprint of the signing key, or reports the error and ends with exit "
    "status 3. So for each profile, which may have a sender, a link, templates and relays of its own."};

}  // namespace mailroom::cmd
