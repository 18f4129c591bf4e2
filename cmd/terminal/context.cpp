// Loads settings and log when they are first needed, and adds hints to connection errors.

#include "cmd/terminal/context.hpp"

#include <iostream>
#include <unistd.h>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/text.hpp"
#include "db/conninfo.hpp"
#include "db/loss_hint.hpp"
#include "db/pooler.hpp"
#include "process/stop_watcher.hpp"
#include "queue/preconditions.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom::cmd {

Context::Context(GlobalOptions global, config::Overrides overrides, config::EnvironmentVariables environment)
    : global_(global), overrides_(std::move(overrides)), environment_(std::move(environment)) {}

config::Settings Context::load(config::FileUse use) const {
  return config::load_settings(overrides_, environment_, use);
}

void Context::print(std::string_view text) {
  out_.write(printable_lines(text));
}

void Context::say(const std::string& text) {
  print(folded(text, out_.columns().value_or(0)));
}

const config::Settings& Context::settings() {
  if (!settings_) settings_ = load();
  return *settings_;
}

Log& Context::log() {
  if (!log_) {
    auto level = settings().log.level;
    if (global_.quiet) level = LogLevel::error;
    if (global_.verbose) level = LogLevel::debug;
    log_.emplace(Log::Options{.level = level,
                              .format = settings().log.format,
                              .colour = colour_on(err_),
                              .journal = stderr_is_journal(),
                              .queue = joined(settings().collect.queues, ",")});
  }
  return *log_;
}

bool Context::colour_on(const Output& output) const {
  if (global_.colour != ColourMode::automatic) return global_.colour == ColourMode::always;
  const auto no_colour = environment_.find("NO_COLOR");
  const bool is_unwanted = no_colour != environment_.end() && !no_colour->second.empty();
  return !is_unwanted && output.is_terminal();
}

void Context::warn_of_visible_password() {
  if (config::setting_of(settings(), "database.url").origin.kind != config::OriginKind::flag) return;
  if (!db::has_password(settings().database.url)) return;
  log().warn("the password in --database-url is visible in the process list; use a password file instead");
}

void Context::explain_unreachable(const std::function<void()>& work) {
  try {
    work();
  } catch (const db::ConnectionLost& error) {
    throw db::ConnectionLost(error.what(), db::unreachable_hint(error, settings().database.url));
  }
}

std::unique_ptr<db::Connection> Context::connect(const std::string& purpose,
                                                 const process::StopSignal* stop) {
  std::unique_ptr<db::Connection> connection;
  warn_of_visible_password();
  explain_unreachable([&] {
    const auto target = db::configured_database(settings());
    const auto program = "mailroom " + purpose;
    connection = stop == nullptr ? std::make_unique<db::Connection>(target, program)
                                 : process::connect_until_stopped(*stop, target, program);
  });
  return connection;
}

std::unique_ptr<db::Connection> Context::connect_to_schema(const std::string& purpose,
                                                           const std::vector<std::string>& reads,
                                                           const process::StopSignal* stop) {
  auto connection = connect(purpose, stop);
  schema::require_current_schema(*connection);
  schema::require_all_rows(*connection, reads);
  queue::require_ids_to_spare(*connection);
  return connection;
}

std::unique_ptr<db::WaitWatch> Context::watch_waits(const db::Connection& connection,
                                                    const std::string& purpose,
                                                    std::function<void()> before) {
  auto& log = this->log();
  const auto tell = [&log, before = std::move(before)](const std::string& text) {
    if (before) before();
    log.warn(text);
  };
  return std::make_unique<db::WaitWatch>(
      connection,
      db::WaitWatch::Options{
          .target = db::configured_database(settings()), .purpose = "mailroom " + purpose, .tell = tell});
}

void Context::require_own_session(db::Connection& connection, const std::string& purpose) {
  mailroom::db::require_own_session(connection, db::configured_database(settings()), "mailroom " + purpose);
}

bool is_yes(std::string_view answer) {
  const auto word = lower_case(trimmed(answer));
  return (word == "y" || word == "yes") && answer.find('\n') == std::string_view::npos;
}

bool can_ask(Context& context) {
  return isatty(STDIN_FILENO) == 1 && context.err().is_terminal();
}

void confirm(Context& context, const std::string& question) {
  if (context.global().yes) return;
  if (!can_ask(context)) {
    throw Error(ExitCode::declined, "there is no terminal to ask on: " + question,
                "give --yes to answer yes");
  }
  context.err().write(printable(question) + " [y/N] ");
  std::string answer;
  if (!std::getline(std::cin, answer)) context.err().write("\n");
  if (!is_yes(answer)) throw Error(ExitCode::declined, "declined: nothing was changed");
}

}  // namespace mailroom::cmd
