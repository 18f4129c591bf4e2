// Why libpq refuses a connection string, told without a secret.

#include "db/conninfo_error.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <memory>
#include <optional>

#include "base/text.hpp"

namespace mailroom {
namespace {

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

}  // namespace mailroom
