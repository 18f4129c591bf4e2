// Leaves the parsing to libpq, but refuses strings in which libpq would take a password for a host.

#include "db/conninfo.hpp"

#include <algorithm>
#include <cstdlib>
#include <libpq-fe.h>
#include <memory>

#include "base/error.hpp"
#include "base/secret_file.hpp"
#include "base/secret_text.hpp"
#include "db/loss_hint.hpp"

namespace mailroom::db {
namespace {

bool is_secret(const std::string& keyword) {
  return keyword == "password" || keyword == "sslpassword";
}

/// True if the value of a non-secret option contains a password, as a connection string in place of a
/// database name does; it would be shown.
bool holds_password(const ConninfoOption& option) {
  return !is_secret(option.keyword) && without_passwords(option.value) != option.value;
}

std::string quoted(const std::string& value) {
  std::string text = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  return text + "'";
}

/// keyword=value list; quotes only the values that need it.
std::string plain_text(const std::vector<ConninfoOption>& options) {
  std::string text;
  for (const auto& option : options) {
    const bool plain =
        option.value.find_first_of(" \t\n\r\v\f'\\") == std::string::npos && !option.value.empty();
    if (!text.empty()) text += ' ';
    text += option.keyword + "=" + (plain ? option.value : quoted(option.value));
  }
  return text;
}

/// The value that libpq takes from its environment variables and defaults; null if there is none.
const char* default_of(const PQconninfoOption* defaults, const std::string& keyword) {
  for (const auto* option = defaults; option != nullptr && option->keyword != nullptr; ++option) {
    if (option->keyword == keyword) return option->val;
  }
  return nullptr;
}

/// Null if `options` do not set `keyword`.
const ConninfoOption* find_option(const std::vector<ConninfoOption>& options, const std::string& keyword) {
  const auto found = std::ranges::find(options, keyword, &ConninfoOption::keyword);
  return found == options.end() ? nullptr : &*found;
}

/// True for a URI with an @ other than the one before the host: probably an @ in the password that is not
/// percent-encoded, so libpq would take the rest of the password for a host, port or database, and show it.
bool has_stray_at(std::string_view conninfo) {
  for (const std::string_view scheme : {"postgresql://", "postgres://"}) {
    if (!conninfo.starts_with(scheme)) continue;
    conninfo.remove_prefix(scheme.size());
    const auto end = conninfo.find_first_of("@/");
    if (end != std::string_view::npos && conninfo[end] == '@') conninfo.remove_prefix(end + 1);
    return conninfo.substr(0, conninfo.find('?')).find('@') != std::string_view::npos;
  }
  return false;
}

using LibpqOptions = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

/// The values that libpq takes from the environment, the service file and its own defaults for what `given`
/// does not set. libpq reads the service that a connection string names only when it connects: to a socket
/// that does not exist, since a session is not wanted.
LibpqOptions inherited_options(const std::vector<ConninfoOption>& given) {
  const auto* service = find_option(given, "service");
  if (service == nullptr) return {PQconndefaults(), PQconninfoFree};
  const auto nowhere = plain_text({*service, {"host", "/"}});
  const std::unique_ptr<PGconn, decltype(&PQfinish)> unconnected(PQconnectStart(nowhere.c_str()), PQfinish);
  return {PQconninfo(unconnected.get()), PQconninfoFree};
}

}  // namespace

std::vector<ConninfoOption> parse_conninfo(const std::string& conninfo) {
  if (has_stray_at(conninfo)) throw unparsable(conninfo, "");
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> parsed(
      PQconninfoParse(conninfo.c_str(), &message), PQconninfoFree);
  const std::unique_ptr<char, decltype(&PQfreemem)> freed(message, PQfreemem);
  if (!parsed) throw unparsable(conninfo, message == nullptr ? "" : message);
  std::vector<ConninfoOption> options;
  for (const auto* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) options.push_back({option->keyword, option->val});
  }
  for (const auto& option : options) {
    if (!holds_password(option)) continue;
    throw Error(ExitCode::configuration, "the connection string has a password in its " + option.keyword,
                "write the parts of the connection string separately: host=… dbname=… user=…");
  }
  return options;
}

std::string with_defaults(const std::string& conninfo, const std::vector<ConninfoOption>& defaults) {
  auto options = parse_conninfo(conninfo);
  for (const auto& option : defaults) {
    if (find_option(options, option.keyword) == nullptr) options.push_back(option);
  }
  return plain_text(options);
}

std::string with_fallbacks(const std::string& conninfo, const std::vector<ConninfoOption>& fallbacks) {
  const auto inherited = inherited_options(parse_conninfo(conninfo));
  auto missing = fallbacks;
  std::erase_if(missing, [&](const ConninfoOption& option) {
    return default_of(inherited.get(), option.keyword) != nullptr;
  });
  return with_defaults(conninfo, missing);
}

std::string with_option(const std::string& conninfo, const ConninfoOption& option) {
  auto options = parse_conninfo(conninfo);
  std::erase_if(options, [&](const ConninfoOption& other) { return other.keyword == option.keyword; });
  options.push_back(option);
  return plain_text(options);
}

int connect_timeout_of(const std::string& conninfo) {
  const auto options = parse_conninfo(conninfo);
  const std::string keyword = "connect_timeout";
  const auto* given = find_option(options, keyword);
  const auto inherited = inherited_options(options);
  const char* text = given != nullptr ? given->value.c_str() : default_of(inherited.get(), keyword);
  return text == nullptr ? 0 : std::max(std::atoi(text), 0);
}

std::string redact_conninfo(const std::string& conninfo) {
  auto options = parse_conninfo(conninfo);
  for (auto& option : options) {
    if (is_secret(option.keyword)) option.value = "***";
  }
  return plain_text(options);
}

std::string describe_target(const std::string& conninfo) {
  const auto given = parse_conninfo(conninfo);
  const auto defaults = inherited_options(given);
  std::vector<ConninfoOption> target;
  for (const std::string keyword : {"service", "host", "hostaddr", "port", "dbname", "user"}) {
    if (const auto* value = find_option(given, keyword)) {
      target.push_back(*value);
    } else if (const char* fallback = default_of(defaults.get(), keyword)) {
      target.push_back({keyword, without_passwords(fallback)});
    }
  }
  return plain_text(target);
}

std::string session_options(const std::string& conninfo) {
  const auto given = parse_conninfo(conninfo);
  if (const auto* value = find_option(given, "options")) return value->value;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> defaults(PQconndefaults(),
                                                                              PQconninfoFree);
  const char* fallback = default_of(defaults.get(), "options");
  return fallback == nullptr ? "" : fallback;
}

bool has_password(const std::string& conninfo) {
  const auto options = parse_conninfo(conninfo);
  return std::ranges::any_of(options, is_secret, &ConninfoOption::keyword);
}

DatabaseTarget configured_database(const config::Settings& settings) {
  DatabaseTarget target(settings.database.url, settings.database.schema);
  if (has_password(target.conninfo) || settings.database.password_file.empty()) return target;
  target.password_file = settings.database.password_file;
  target.allow_readable_file = settings.signing.allow_readable_key;
  // A file that is wrong from the start is an error of the configuration.
  read_password_file(target.password_file, target.allow_readable_file, "database.password_file");
  return target;
}

}  // namespace mailroom::db
