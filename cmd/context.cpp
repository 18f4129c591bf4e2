#include "cmd/context.hpp"

#include "config/parse_value.hpp"
#include "db/conninfo.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom {
namespace {

const SettingValue& value_of(const Settings& settings, std::string_view key) {
  for (const auto& value : settings.values) {
    if (value.key == key) return value;
  }
  throw std::logic_error("no such setting: " + std::string(key));
}

Key load_current_key(const Settings& settings) {
  if (!settings.signing_key.empty()) {
    return Key::from_hex(settings.signing_key, value_of(settings, "signing.key").origin.where);
  }
  if (!settings.signing_key_file.empty())
    return Key::from_file(settings.signing_key_file, settings.allow_readable_key);
  throw Error(ExitCode::configuration, "no signing key is configured",
              "set MAILROOM_SECRET_KEY_FILE or signing.key_file; make a key with: openssl rand -hex 32");
}

}  // namespace

Context::Context(GlobalOptions global, Overrides overrides, Environment environment)
    : global_(global), overrides_(std::move(overrides)), environment_(std::move(environment)) {}

Settings Context::load() const {
  return load_settings(overrides_, environment_);
}

const Settings& Context::settings() {
  if (!settings_) settings_ = load();
  return *settings_;
}

Log& Context::log() {
  if (!log_) {
    auto level = settings().log_level;
    if (global_.quiet) level = LogLevel::error;
    if (global_.verbose) level = LogLevel::debug;
    log_.emplace(Log::Options{.level = level, .format = settings().log_format, .colour = colour_on(err_)});
  }
  return *log_;
}

bool Context::colour_on(const Output& output) const {
  const auto no_colour = environment_.find("NO_COLOR");
  if (no_colour != environment_.end() && !no_colour->second.empty()) return false;
  return global_.colour == ColourMode::always ||
         (global_.colour == ColourMode::automatic && output.is_terminal());
}

void Context::warn_of_visible_password() {
  if (value_of(settings(), "database.url").origin.kind != OriginKind::flag) return;
  if (!has_password(settings().database_url)) return;
  log().warn(
      "the password in --database-url can be seen in the list of processes; use a password file instead");
}

void Context::explain_unreachable(const std::function<void()>& work) {
  try {
    work();
  } catch (const ConnectionLost& error) {
    const auto& url = settings().database_url;
    throw ConnectionLost(error.what(), url.empty()
                                           ? "name the database with MAILROOM_DATABASE_URL, database.url or "
                                             "libpq's PGHOST, PGDATABASE and PGUSER"
                                           : "tried: " + redact_conninfo(url));
  }
}

std::unique_ptr<Connection> Context::connect(const std::string& purpose) {
  std::unique_ptr<Connection> connection;
  warn_of_visible_password();
  explain_unreachable(
      [&] { connection = std::make_unique<Connection>(settings().database_url, "mailroom " + purpose); });
  return connection;
}

std::unique_ptr<Connection> Context::connect_to_schema(const std::string& purpose) {
  auto connection = connect(purpose);
  require_current_schema(*connection);
  return connection;
}

KeyRing load_key_ring(const Settings& settings) {
  KeyRing ring{load_current_key(settings), {}};
  for (const auto& item : settings.previous_keys) {
    ring.previous.push_back(
        is_key_text(item) ? Key::from_hex(item, value_of(settings, "signing.previous_key_files").origin.where)
                          : Key::from_file(item, settings.allow_readable_key));
  }
  return ring;
}

}  // namespace mailroom
