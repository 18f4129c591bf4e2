// mailroom init: from nothing to the first mail. Asks, shows what it is going to do, and does it by the
// commands that somebody would type.

#include <filesystem>
#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "cmd/command.hpp"
#include "cmd/init/installation.hpp"
#include "cmd/init/questions.hpp"
#include "cmd/init/relay_trial.hpp"
#include "cmd/init/roles.hpp"
#include "cmd/init/submission.hpp"
#include "cmd/init/usual_database.hpp"
#include "cmd/syntax/arguments.hpp"
#include "config/key_table.hpp"
#include "db/connection.hpp"
#include "mail/address.hpp"
#include "mail/link_template.hpp"
#include "process/child.hpp"

namespace mailroom::cmd {
namespace {

struct InitOptions {
  std::string directory;
  std::string trial;
  bool with_systemd = false;
  bool for_submission = false;
};

std::string given(const config::Settings& settings, std::string_view key) {
  const auto& value = config::setting_of(settings, key);
  return value.origin.kind == config::OriginKind::default_value ? "" : value.text;
}

/// The path of a file that was given. One that is written into the configuration counts from its directory.
std::string given_file(const config::Settings& settings, std::string_view key) {
  const auto path = given(settings, key);
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

/// Throws Error(usage) with the reason of a parser.
template <typename Parsed>
void require(const Parsed& parsed, const std::string& hint) {
  if (const auto* refusal = std::get_if<mail::Refusal>(&parsed))
    throw Error(ExitCode::usage, refusal->reason, hint);
}

/// Whether the file names a key. Throws if it configures a database or a relay: init is for what is new.
bool has_key(const std::string& file) {
  if (!std::filesystem::exists(file)) return false;
  const auto settings = config::load_settings({.file = file, .flags = {}}, {});
  for (const auto& value : settings.values) {
    if (value.origin.kind != config::OriginKind::file ||
        !(value.key.starts_with("database.") || value.key.starts_with("send.")))
      continue;
    throw Error(
        ExitCode::configuration, fmt::format("{} has {} already", file, value.key),
        "mailroom init is for a configuration that is new: mailroom config check looks at this one, and mailroom "
        "send --to ADDRESS sends a mail for trial");
  }
  return config::setting_of(settings, "signing.key_file").origin.kind == config::OriginKind::file;
}

/// Runs words as somebody would type them, and shows them. A child as the user of the services, where these
/// run.
void run_shown(const Installation& installation, std::vector<std::string> words, Context& context) {
  context.say(fmt::format("$ mailroom {}\n", joined(words, " ")));
  if (!installation.with_systemd) {
    words.insert(words.end(), {"--config", installation.file()});
    const auto invocation = parse_arguments(words);
    Context own(invocation.global, invocation.overrides, config::process_environment());
    if (invocation.run(own) != ExitCode::done)
      throw Error(ExitCode::failed, fmt::format("mailroom {} has failed", words.front()));
    return;
  }
  words.insert(words.begin(), {"runuser", "-u", service_user, "--", "mailroom"});
  process::Child child;
  const int problem = child.start(words, {{1, 1}, {2, 2}});
  if (problem != 0 || (child.wait(), !child.has_succeeded()))
    throw Error(ExitCode::failed, fmt::format("'{}' has failed", joined(words, " ")),
                "correct what it says, and type the command again");
}

constexpr std::string_view password_key = "send.password_file";
Question database_question(const Installation& installation, Context& context) {
  return {
      .text = "database, as a libpq URI or keyword=value list",
      .option = "--database-url",
      .fallback = installation.with_systemd ? usual_database : "",
      .is_required = installation.with_systemd,
      .check = [&](const std::string& value) { try_database(value, installation.with_systemd, context); }};
}

/// What was given for relays, beside what is asked for.
std::vector<config::SettingValue> given_for_relay(const config::Settings& settings) {
  std::vector<config::SettingValue> values;
  for (const auto& entry : config::key_table()) {
    if (!entry.needs_relay() || entry.key == "send.relay" || entry.key == password_key) continue;
    auto value = config::setting_of(settings, entry.key);
    if (value.origin.kind == config::OriginKind::default_value) continue;
    if (!entry.content.empty()) value.text = given_file(settings, entry.key);
    values.push_back(std::move(value));
  }
  return values;
}

void ask_for_relay(Installation& made, const config::Settings& settings, Context& context) {
  made.password_file = given_file(settings, password_key);
  const auto& path = settings.send.path;
  const bool has_login =
      !made.password_file.empty() || !path.token_file.empty() || !path.token_command.empty();
  const auto can_be_tried = [&](const std::string& relay) { return has_login || !names_user(relay); };
  made.relay_settings = given_for_relay(settings);
  const RelayLogin login{.from = made.from, .password_file = made.password_file};
  made.relay = answer_to(
      {.text = "relay that takes them, as smtp://user@relay.example:587, ses://eu-west-1 or resend://",
       .option = "--relay",
       .fallback = {},
       .check =
           [&](const std::string& value) {
             if (can_be_tried(value)) return try_relay(value, login);
             try_relay(value);
           }},
      given(settings, "send.relay"), context);
  if (can_be_tried(made.relay)) return;
  made.password = answer_to(
      {.text = "password of that user",
       .option = "--password-file",
       .fallback = {},
       .is_secret = true,
       .check =
           [&](const std::string& value) { try_relay(made.relay, {.from = made.from, .password = value}); }},
      "", context);
}

Installation ask(const InitOptions& options, Context& context) {
  // What another file says is for another installation.
  const auto settings = context.load(config::FileUse::ignored);
  Installation made{.directory = options.directory, .with_systemd = options.with_systemd};
  made.database = answer_to(database_question(made, context), given(settings, "database.url"), context);
  if (made.database.empty()) db::Connection("", "mailroom init");
  made.schema = answer_to({.text = "schema that mailroom lives in",
                           .option = "--schema",
                           .fallback = "mailroom",
                           .check =
                               [](const std::string& value) {
                                 if (value.starts_with("pg_") || value.size() > 63)
                                   throw Error(ExitCode::usage,
                                               fmt::format("no schema can be named '{}'", shown_text(value)));
                               }},
                          given(settings, "database.schema"), context);
  made.from =
      answer_to({.text = "sender of the mails",
                 .option = "--from",
                 .fallback = {},
                 .check =
                     [](const std::string& value) {
                       require(mail::parse_mailbox(value), "for example Example <no-reply@app.example>");
                     }},
                given(settings, "send.from"), context);
  ask_for_relay(made, settings, context);
  made.link = answer_to({.text = "link of mails that have one, with {token} (empty: none)",
                         .option = "--link",
                         .fallback = {},
                         .is_required = false,
                         .check =
                             [](const std::string& value) {
                               require(mail::LinkTemplate::parse(value),
                                       "for example https://app.example/{action}?token={token}");
                             }},
                        given(settings, "send.link"), context);
  made.trial = answer_to({.text = "who gets a mail for trial (empty: nobody)",
                          .option = "--to",
                          .fallback = {},
                          .is_required = false,
                          .check =
                              [](const std::string& value) {
                                require(mail::parse_address(value), "for example me@app.example");
                              }},
                         options.trial, context);
  return made;
}

std::string plan_of(const Installation& made, bool keeps_key) {
  auto text = fmt::format("{} is written: database, schema {}, sender {}, relay {}.\n", made.file(),
                          made.schema, shown_text(made.from), without_url_passwords(made.relay));
  const auto key = made.directory + "/" + made.key();
  text +=
      keeps_key || std::filesystem::exists(key)
          ? ""
          : fmt::format(
                "{} is made: the key that links are signed with. Keep a copy: no other key verifies them.\n",
                key);
  text += fmt::format("The schema {} is created or migrated.\n", made.schema);
  if (!made.trial.empty()) text += fmt::format("A mail for trial goes to {}.\n", made.trial);
  if (made.with_systemd) text += "mailroom-send@mailroom.service is enabled and started.\n";
  return text;
}

void send_trial(const Installation& made, Context& context) {
  if (made.trial.empty()) return;
  run_shown(made,
            {"message", "send", "--to", made.trial, "--subject", "mailroom works", "--text",
             "This mail was asked for by mailroom init."},
            context);
  run_shown(made, {"send", "--once"}, context);
}

ExitCode run_init(InitOptions options, Context& context) {
  if (options.directory.empty()) options.directory = options.with_systemd ? "/etc/mailroom" : ".";
  if (options.with_systemd && geteuid() != 0)
    throw Error(ExitCode::usage, "--systemd needs root", "sudo mailroom init --systemd");
  if (options.for_submission) return make_submission(options.directory, options.with_systemd, context);
  const bool keeps_key = has_key(options.directory + "/mailroom.yaml");
  const auto made = ask(options, context);
  context.say(plan_of(made, keeps_key));
  confirm(context, "do that?");
  for (const auto& path : write_files(made, keeps_key))
    context.say(fmt::format("wrote {}\n", path));
  run_shown(made, {"migrate", "--yes"}, context);
  run_shown(made, {"config", "check"}, context);
  send_trial(made, context);
  if (made.with_systemd)
    run_program({"systemctl", "enable", "--now", "mailroom-send@mailroom.service"}, context);
  context.say(fmt::format(
      "done. {}\nAsk for a mail in any transaction: SELECT {}.mailroom_send(ARRAY['you@app.example'], subject => 'Hello', "
      "text => 'It works.')\nSee what became of it: mailroom message list\nRoles for applications: mailroom init --roles\n",
      made.with_systemd ? "Mails are sent as they are asked for."
                        : "Send what is due, until stopped: mailroom send",
      made.schema));
  return ExitCode::done;
}

Run add_init(CommandSyntax& syntax) {
  auto options = std::make_shared<InitOptions>();
  auto roles = std::make_shared<RoleOptions>();
  auto directory = syntax.text("--directory DIR", options->directory,
                               "write into this directory [.; with --systemd /etc/mailroom]");
  auto trial = syntax.text("--to ADDRESS", options->trial, "send a mail for trial to ADDRESS");
  auto systemd = syntax.flag("--systemd", options->with_systemd,
                             "for the services of the package: as their user, and start them");
  auto submission =
      syntax.flag("--submission", options->for_submission,
                  "let programs mail by SMTP, with the configuration that is there, and nothing else");
  submission.excludes(trial);
  auto make =
      syntax.flag("--roles", roles->is_given,
                  "make the roles of docs/security.md for the schema that is configured, and nothing else");
  make.excludes(directory).excludes(trial).excludes(systemd).excludes(submission);
  syntax.text("--prefix PREFIX", roles->prefix, "begin their names with PREFIX_ [mailroom]").needs(make);
  syntax.flag("--dry-run", roles->dry_run, "print their SQL").needs(make);
  return [options, roles](Context& context) {
    return roles->is_given ? make_roles(*roles, context) : run_init(*options, context);
  };
}

}  // namespace

const Command init_command{
    "init", "set mailroom up, from the configuration to the first mail",
    "Examples:\n"
    "  mailroom init                              ask, and write ./mailroom.yaml\n"
    "  mailroom init --yes --from me@app.example --relay smtp://localhost\n"
    "  mailroom init --roles                      make the roles of applications\n",
    add_init,
    "Asks for the database, a schema in it, the sender and the relay, says what it is going to do, and does it: writes "
    "mailroom.yaml and the signing key, creates the schema, checks the configuration, and sends a mail for trial. As root, "
    "mailroom init --systemd does this for the services of the package, and starts the one that mails. Each answer is tried "
    "at once, and asked for again if it cannot be used. What is given as an option, or by a variable such as "
    "MAILROOM_DATABASE_URL, is not asked for; with --yes nothing is. So ca_file, hello_name, an access token, and what ses:// and resend:// need.\n\n"
    "It changes nothing that is there: a configuration that names a database or a relay, and a key, stay as they are. A "
    "file with a key or a password can be read by its owner alone, with --systemd also by the user of the services.\n\n"
    "The database must exist; with --systemd the role and the database mailroom of a PostgreSQL on this host are made "
    "if they do not. docs/service.md has the same steps by hand.\n\n"
    "mailroom init --roles makes a role for each task, mailroom_producer and others, and grants what docs/security.md says. It "
    "needs the owner of the tables with CREATEROLE, or a superuser; --dry-run prints the SQL for one. Run it again after an "
    "upgrade: it grants what is new, and takes nothing away. Roles belong to all databases of a server: --prefix keeps those "
    "of two databases apart.\n\n"
    "mailroom init --submission makes a certificate and adds the section submission to the configuration, for logins at 127.0.0.1:587; "
    "with --systemd it starts the service that takes mails. docs/submission.md says more."};

}  // namespace mailroom::cmd
