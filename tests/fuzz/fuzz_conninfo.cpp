// No password leaves a connection string, however it is written there, and nothing else is lost.

#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/secret_text.hpp"
#include "db/conninfo.hpp"
#include "fuzz/fuzz.hpp"

namespace mailroom::fuzz::fuzz_conninfo {
namespace {

using Options = std::map<std::string, std::string>;

/// What the password is recognised by; what is around it is the input's.
constexpr std::string_view mark = "Zx7qKvW9";

bool tells_password(const std::string& text) {
  return text.find(mark) != std::string::npos;
}

Options options_of(const std::string& conninfo) {
  Options options;
  for (const auto& option : db::parse_conninfo(conninfo))
    options[option.keyword] = option.value;
  return options;
}

/// A value as libpq's manual says it is quoted.
std::string in_quotes(std::string_view value) {
  std::string text = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  return text + "'";
}

std::string percent_encoded(std::string_view value) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    text += {'%', digits[byte / 16], digits[byte % 16]};
  }
  return text;
}

std::string without_nul(std::string_view text) {
  std::string result(text);
  std::erase(result, '\0');
  return result;
}

/// True when libpq takes it.
bool check(const std::string& conninfo) {
  try {
    const auto shown = db::redact_conninfo(conninfo);
    require(!tells_password(shown), "the redacted text has no password");
    auto expected = options_of(conninfo);
    for (const auto* secret : {"password", "sslpassword"}) {
      if (expected.count(secret) > 0) expected[secret] = "***";
    }
    require(options_of(shown) == expected, "the redacted text says all else");
    require(!tells_password(db::describe_target(conninfo)), "the target has no password");
    require(options_of(db::with_defaults(conninfo, {})) == options_of(conninfo),
            "defaults change nothing given");
    return true;
  } catch (const Error& error) {
    require(error.code() == ExitCode::configuration, "it is an error of the configuration");
    require(!tells_password(error.what()) && !tells_password(error.hint()), "an error has no password");
    return false;
  }
}

/// Any text, for which nobody knows what in it is the password.
void check_any(const std::string& conninfo) {
  try {
    db::redact_conninfo(conninfo);
    db::describe_target(conninfo);
    require(options_of(db::with_defaults(conninfo, {})) == options_of(conninfo),
            "defaults change nothing given");
  } catch (const Error& error) {
    require(error.code() == ExitCode::configuration, "it is an error of the configuration");
  }
}

/// As somebody writes a password who does not know that it has to be encoded, as far as it can be told from
/// what is around it.
void check_unencoded(const std::string& before, const std::string& after) {
  const auto password = before + std::string(mark) + after;
  const auto has_none_of = [&](const char* characters) {
    return before.find_first_of(characters) == std::string::npos;
  };
  if (has_none_of("?") && after.find('?') == std::string::npos)
    check("postgresql://app:" + password + "@db/mail");
  if (has_none_of("&")) check("postgresql://db/mail?password=" + password);
  if (has_none_of(" \t\n\r\v\f'")) check("password=" + password);
}

int run(const std::uint8_t* data, std::size_t size) {
  // A mark that the fuzzer read out of our comparisons proves nothing.
  if (tells_password(std::string(text_of(data, size)))) return -1;
  Fields fields(data, size);
  const auto before = without_nul(fields.take());
  const auto after = without_nul(fields.take());
  const auto user = without_nul(fields.take());
  const auto password = before + std::string(mark) + after;
  // A user with a password in it is refused.
  if (without_passwords(user) != user) return 0;
  require(check("user=" + in_quotes(user) + " password=" + in_quotes(password) +
                " sslpassword = " + in_quotes(password)),
          "a quoted password is taken");
  require(check("postgresql://" + percent_encoded(user) + ":" + percent_encoded(password) +
                "@db:5432/mail?sslpassword=" + percent_encoded(password)),
          "an encoded password is taken");
  check_unencoded(before, after);
  check_any(std::string(text_of(data, size)));
  return 0;
}

const Target target("conninfo", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_conninfo
