// Lists of words that providers use. A word counts only with the codes that it comes with.

#include "carriers/smtp/refusal/relay_fault.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace mailroom::smtp {
namespace {

using Words = std::vector<std::string_view>;

bool has_any(const std::string& text, const Words& words) {
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

/// The enhanced code is a word of its own: 5.7.3 is not the beginning of 5.7.30.
bool has_code(const std::string& text, std::string_view code) {
  const auto end = text.find_first_not_of("0123456789.");
  return std::string_view(text).substr(0, end) == code;
}

bool speaks_of_tls(int code, const std::string& words) {
  return code == 538 || has_any(words, {"starttls", "encryption required", "encryption is required"});
}

bool wants_login(int code, const std::string& words) {
  return code == 530 || code == 535 || has_code(words, "5.7.57") ||
         has_any(words, {"authentication required", "authentication is required", "requires authentication",
                         "not authenticated", "smtp authentication", "authenticate first", "log in first",
                         "must authenticate"});
}

/// What is about this host, also at MAIL.
bool is_about_host(const std::string& words) {
  return has_any(words,
                 {"client host", "helo", "blocked using", "your ip", "ip address", "banned sending ip"});
}

}  // namespace

RelayFault fault_of_refusal(SmtpStep step, int code, std::string_view text) {
  const auto words = lower_case(text);
  if (speaks_of_tls(code, words)) return RelayFault::wants_tls;
  if (wants_login(code, words)) return RelayFault::wants_login;
  const bool names_sender = text.starts_with("4.1.") || has_any(words, {"sender", "from address"});
  if (code == 421 || (code < 500 && !(step == SmtpStep::mail && names_sender))) return RelayFault::busy;
  return step == SmtpStep::mail && !is_about_host(words) ? RelayFault::sender : RelayFault::refused;
}

LoginFault fault_of_login(int code, std::string_view text) {
  // RFC 4954, section 6, has 432, 454, 534, 535 and 538; what they mean to a provider is in its words.
  const auto words = lower_case(text);
  if (code == 432 || has_any(words, {"concurren", "too many connections", "too many sessions"}))
    return LoginFault::crowded;
  if (speaks_of_tls(code, words) || has_code(words, "5.7.11")) return LoginFault::encryption;
  if (has_any(words, {"application-specific", "app-specific", "app password", "application password",
                      "authorization code", "authorisation code"}))
    return LoginFault::app_password;
  if (has_code(words, "5.7.14") || has_any(words, {"web browser", "web login", "sign in at"}))
    return LoginFault::sign_in;
  if (has_code(words, "5.7.139") || has_code(words, "5.7.30") ||
      has_any(words,
              {"clientauthentication is disabled", "basic authentication", "authentication is disabled",
               "smtp is disabled", "smtp access is disabled", "security defaults"}))
    return LoginFault::switched_off;
  if (has_any(words, {"credits", "quota", "limit exceeded", "limit reached", "suspended", "locked", "blocked",
                      "not yet activated", "account is disabled", "account disabled", "expired"}))
    return LoginFault::account;
  if (has_any(words, {"ip address", "your ip", "this ip"})) return LoginFault::host;
  if (code < 500) return LoginFault::later;
  if (has_any(words, {"too many"})) return LoginFault::later;
  if (code == 504 || code == 534 || has_code(words, "5.7.4") ||
      has_any(words, {"mechanism", "authentication type"}))
    return LoginFault::mechanism;
  return has_code(words, "5.7.3") ? LoginFault::unsure : LoginFault::password;
}

}  // namespace mailroom::smtp
