// Lists of words that providers use. A word counts only with the codes that it comes with.

#include "carriers/smtp/relay_fault.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace mailroom {
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

using enum RelayWish;

template <std::size_t count>
bool has_any(std::string_view text, const std::array<std::string_view, count>& words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

/// True if `text` has `word` with no letter beside it.
bool has_word(std::string_view text, std::string_view word) {
  const auto is_letter = [&](std::size_t i) {
    return i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) != 0;
  };
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (!(at > 0 && is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  }
  return false;
}

/// A mailbox may be full, busy, or get too many mails from everybody: another one is not. RFC 3463: X.1 is
/// about addresses, X.2 about mailboxes.
bool is_about_recipient(std::string_view text) {
  constexpr std::array<std::string_view, 4> words{"mailbox", "recipient", "user ", "inbox"};
  return text.starts_with("4.1.") || text.starts_with("4.2.") || has_any(text, words);
}

bool is_about_other_limit(std::string_view text) {
  constexpr std::array<std::string_view, 9> words{"storage", "disk",   "size",    "hops",     "many errors",
                                                  "timeout", "time l", "invalid", "timed out"};
  return has_any(text, words);
}

bool asks_for_fewer(std::string_view text) {
  constexpr std::array<std::string_view, 4> subjects{"connection", "concurren", "session", "simultaneous"};
  constexpr std::array<std::string_view, 4> limits{"too many", "limit", "exceed", "concurren"};
  constexpr std::array<std::string_view, 2> mails{"message", "mails"};
  return has_any(text, subjects) && has_any(text, limits) && !has_any(text, mails);
}

bool asks_for_lower_rate(std::string_view text) {
  constexpr std::array<std::string_view, 8> words{"throttl",       "too fast",  "slow down", "too many",
                                                  "too much mail", "ratelimit", "overlimit", "exceeded"};
  return has_any(text, words) || has_word(text, "rate") || has_word(text, "limit") || has_word(text, "busy");
}

/// Some providers refuse for good what came too fast, and mean the next moment.
bool names_rate(std::string_view text) {
  constexpr std::array<std::string_view, 3> mails{"emails per ", "messages per ", "mails per "};
  constexpr std::array<std::string_view, 2> times{"per second", "per minute"};
  return has_any(text, mails) && has_any(text, times);
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

bool is_configured_wish(int code, std::string_view text, const std::vector<std::string>& patterns) {
  if (code == 0) return false;
  const auto reply = fmt::format("{} {}", code, lower_case(text));
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return !pattern.empty() && reply.find(lower_case(pattern)) != std::string::npos;
  });
}

RelayWish relay_wish(SmtpStep step, int code, std::string_view words, RefusalSubject about) {
  if (code < 400 || code >= 600 || about == RefusalSubject::everyone) return none;
  if (code >= 500) return step >= SmtpStep::mail && names_rate(words) ? lower_rate : none;
  if (code == 432) return fewer_at_once;
  if (step < SmtpStep::mail) return asks_for_fewer(words) ? fewer_at_once : none;
  if (code == 454 && step == SmtpStep::end) return lower_rate;
  // Postfix counts the recipients of a client in a time, and names the client.
  if (has_any(words, std::array<std::string_view, 1>{"too many recipients from"})) return lower_rate;
  if (is_about_recipient(words) || is_about_other_limit(words)) return none;
  if (asks_for_fewer(words)) return fewer_at_once;
  return asks_for_lower_rate(words) ? lower_rate : none;
}

}  // namespace mailroom
