// A list of the words of PostgreSQL 14 to 17, libpq and PgBouncer. A failed connection has no SQLSTATE.

#include "db/loss_hint.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <initializer_list>
#include <libpq-fe.h>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "db/conninfo.hpp"

namespace mailroom::db {
namespace {

constexpr auto all_in_use =
    "all connections are in use: close some, or raise max_connections, or the limit of the role, the database or the pooler";
constexpr auto check_password =
    "check the user, and the password in database.password_file, PGPASSFILE or PGPASSWORD";
constexpr auto use_tls =
    "the server may want TLS: add sslmode=require to the connection string, or an entry for this user, database and "
    "address to pg_hba.conf";
constexpr auto add_entry =
    "add an entry for this user, database and address to pg_hba.conf, and let the server reload it";
constexpr auto check_certificate =
    "name the file of the authority that signed the server's certificate as sslrootcert, or correct the host's name";
constexpr auto await_start = "wait until the server has started";
constexpr auto check_host = "start the server, or correct host and port";

struct Advice {
  std::string_view words;
  const char* hint;
};

/// Of several that fit, the first: libpq reports each address that it tried, and where the server answered is
/// worth more than where nobody did.
constexpr std::array advice{
    Advice{"sorry, too many clients already", all_in_use},
    Advice{"remaining connection slots are reserved", all_in_use},
    Advice{"too many connections for", all_in_use},
    Advice{"no more connections allowed", all_in_use},
    Advice{"query_wait_timeout", all_in_use},
    Advice{"password authentication failed", check_password},
    Advice{"no password supplied", check_password},
    Advice{"empty password", check_password},
    Advice{"SASL authentication failed", check_password},
    Advice{"Peer authentication failed",
           "run it as that user of the system, or connect with a password and host=localhost"},
    Advice{"Ident authentication failed", "run it as that user of the system, or connect with a password"},
    Advice{"no encryption", use_tls},
    Advice{"SSL off", use_tls},
    Advice{"no pg_hba.conf entry", add_entry},
    Advice{"pg_hba.conf rejects", add_entry},
    Advice{"server does not support SSL",
           "turn on ssl in the server, or use sslmode=prefer in the connection string"},
    Advice{"SSL required", use_tls},
    Advice{"root certificate file", check_certificate},
    Advice{"certificate verify failed", check_certificate},
    Advice{"server certificate for", check_certificate},
    Advice{"not currently accepting connections",
           "allow connections to the database (ALTER DATABASE … ALLOW_CONNECTIONS), or name another one"},
    Advice{"permission denied for database", "let the owner of the database grant CONNECT on it to the role"},
    Advice{"is not permitted to log in", "let a superuser give the role LOGIN, or connect as another user"},
    Advice{"no such database", "create the database, or correct its name in the connection string"},
    Advice{"no such user", "correct the user in the connection string"},
    Advice{"the database system is", await_start},
    Advice{"session is read-only", "none of the hosts is the primary: start it, or add its host"},
    Advice{"server is in hot standby mode", "none of the hosts is the primary: start it, or add its host"},
    Advice{"could not translate host name", "correct the host's name, or the name service of this machine"},
    Advice{"timeout expired",
           "nothing answers there: correct host and port, or let the network through to it"},
    Advice{"timed out", "nothing answers there: correct host and port, or let the network through to it"},
    Advice{"No route to host",
           "nothing answers there: correct host and port, or let the network through to it"},
    Advice{"Connection refused", check_host},
    Advice{"Is the server running", check_host},
};

/// `role "app" does not exist`
bool is_missing(std::string_view reason, std::string_view kind) {
  const auto start = reason.find(kind);
  return start != std::string_view::npos &&
         reason.find("\" does not exist", start + kind.size()) != std::string_view::npos;
}

constexpr auto form =
    "write postgresql://user@host:5432/database (percent-encode special characters) or host=HOST "
    "dbname=NAME";

/// Options and parameters have no digits, unlike most passwords.
bool is_name(std::string_view text) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 40 && std::ranges::all_of(text, is_part);
}

bool is_libpq_uri(std::string_view conninfo) {
  return conninfo.starts_with("postgresql://") || conninfo.starts_with("postgres://");
}

/// `postgresql+psycopg2` of a URI that libpq does not know.
std::optional<std::string_view> foreign_scheme(std::string_view conninfo) {
  const auto scheme = conninfo.substr(0, conninfo.find("://"));
  if (scheme.size() == conninfo.size() || scheme.empty() || scheme.size() > 40) return std::nullopt;
  const bool is_plain = scheme.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789+.:-") == std::string_view::npos;
  return is_plain && !is_libpq_uri(conninfo) ? std::optional(scheme) : std::nullopt;
}

bool is_other_database(std::string_view scheme) {
  constexpr std::array<std::string_view, 6> others{"mysql",     "mariadb", "sqlite",
                                                   "sqlserver", "mongodb", "redis"};
  return std::ranges::any_of(others, [&](std::string_view other) { return scheme.starts_with(other); });
}

/// What a string begins with that belongs to the file it was read from; null for none.
const char* first_stranger(std::string_view conninfo) {
  if (conninfo.starts_with('"') || conninfo.starts_with('\'')) return "a quotation mark";
  return conninfo.starts_with(' ') || conninfo.starts_with('\t') ? "a blank" : nullptr;
}

bool is_known(std::string_view keyword) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconndefaults(),
                                                                             PQconninfoFree);
  for (const auto* option = options.get(); option != nullptr && option->keyword != nullptr; ++option) {
    if (option->keyword == keyword) return true;
  }
  // libpq's URIs also know the `ssl=true` of JDBC.
  return keyword == "ssl";
}

/// The first parameter of a URI that libpq does not know. What follows a ? before the last @ may be a part of
/// the password.
std::optional<std::string_view> unknown_parameter(std::string_view conninfo) {
  const auto at = conninfo.rfind('@');
  const auto mark = conninfo.find('?', at == std::string_view::npos ? 0 : at);
  if (!is_libpq_uri(conninfo) || mark == std::string_view::npos) return std::nullopt;
  for (const auto parameter : split(conninfo.substr(mark + 1), '&')) {
    const auto name = parameter.substr(0, parameter.find('='));
    if (name.size() < parameter.size() && is_name(name) && !is_known(name)) return name;
  }
  return std::nullopt;
}

/// The name in libpq's `invalid connection option "hots"`, unless a password comes before it: without quotes
/// the rest of a password with a blank looks like an option.
std::optional<std::string_view> unknown_option(std::string_view conninfo, std::string_view report) {
  constexpr std::string_view marker = "invalid connection option \"";
  if (!report.starts_with(marker) || is_libpq_uri(conninfo)) return std::nullopt;
  const auto name = report.substr(marker.size(), report.find('"', marker.size()) - marker.size());
  const auto before = conninfo.substr(0, conninfo.find(name));
  if (!is_name(name) || before.find("pass") != std::string_view::npos) return std::nullopt;
  return name;
}

bool names_a_schema(std::string_view parameter) {
  return parameter == "search_path" || parameter == "schema" || parameter == "currentSchema";
}

Error refused(const std::string& reason, const std::string& hint = form) {
  return {ExitCode::configuration, "the connection string cannot be parsed: " + reason, hint};
}

/// What libpq's reports mean, by the words that they begin with and that quote nothing.
struct Meaning {
  std::string_view report;
  const char* reason;
};
constexpr std::array meanings{
    Meaning{"invalid percent-encoded token", "a % must be followed by two hexadecimal digits"},
    Meaning{"forbidden value %00", "%00 is not allowed"},
    Meaning{"missing key/value separator", "a parameter after the ? has no ="},
    Meaning{"extra key/value separator", "a parameter after the ? has more than one ="},
    Meaning{"end of string reached when looking for matching", "the ] of an IPv6 address is missing"},
    Meaning{"IPv6 host address may not be empty", "the IPv6 address is empty"},
    Meaning{"unexpected character", "after the ] of an IPv6 address only a : or a / may follow"},
    Meaning{"missing \"=\" after", "a word has no =; a value with a blank needs quotes"},
    Meaning{"unterminated quoted string", "the closing ' of a value is missing"},
    Meaning{"invalid connection option", "it has an option that libpq does not know"},
    Meaning{"invalid URI query parameter", "it has a parameter that libpq does not know"},
};

}  // namespace

std::string hint_for_loss(std::string_view reason) {
  if (is_missing(reason, "database \""))
    return "create the database, or correct its name in the connection string";
  if (is_missing(reason, "role \""))
    return "create the role with LOGIN, or correct the user in the connection string";
  const auto found = std::ranges::find_if(
      advice, [&](const Advice& each) { return reason.find(each.words) != std::string_view::npos; });
  return found == advice.end() ? "" : found->hint;
}

std::string unreachable_hint(const ConnectionLost& error, const std::string& url) {
  if (!url.empty()) {
    const auto tried =
        "tried: " + redact_conninfo(url) + "; mailroom config show shows where that comes from";
    return error.hint().empty() ? tried : error.hint() + "; " + tried;
  }
  if (!error.hint().empty()) return error.hint() + "; tried: " + describe_target(url);
  return "name the database with MAILROOM_DATABASE_URL, database.url or libpq's PGHOST, PGDATABASE and PGUSER";
}

Error unparsable(std::string_view conninfo, std::string_view report) {
  if (const auto* const first = first_stranger(conninfo)) {
    return refused(
        fmt::format("it begins with {}, which is no part of it", first),
        "remove it: a file of variables for a service or a container keeps what stands around a value");
  }
  if (report.empty()) {
    const bool has_several = std::ranges::count(conninfo, '@') > 1;
    return refused(has_several ? "it has more than one @" : "it has a / before the @",
                   fmt::format("write {} in the password as {}; or {}", has_several ? "an @" : "a /",
                               has_several ? "%40" : "%2F", form));
  }
  if (const auto scheme = foreign_scheme(conninfo)) {
    return refused(fmt::format("it begins with {}://, which libpq does not know", *scheme),
                   is_other_database(*scheme) ? "mailroom needs PostgreSQL, and this names another database"
                                              : "begin it with postgresql://");
  }
  if (const auto name = unknown_parameter(conninfo)) {
    return refused(fmt::format("libpq knows no parameter {}", *name),
                   names_a_schema(*name)
                       ? "remove it, and name the schema with database.schema or MAILROOM_DATABASE_SCHEMA"
                       : "remove it: it is for another driver");
  }
  if (const auto name = unknown_option(conninfo, report))
    return refused(fmt::format("libpq knows no option {}", *name));
  const auto meaning =
      std::ranges::find_if(meanings, [&](const Meaning& each) { return report.starts_with(each.report); });
  if (meaning != meanings.end()) return refused(meaning->reason);
  return {ExitCode::configuration, "the connection string cannot be parsed", form};
}

}  // namespace mailroom::db
