// Lists of words in which providers ask for fewer mails. It does not say by how much: delivery/pace learns
// that.

#include "carriers/smtp/refusal/relay_wish.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>

#include "base/text.hpp"

namespace mailroom::smtp {
namespace {

template <std::size_t count>
bool has_one_of(std::string_view text, const std::array<std::string_view, count>& words) {
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
  return text.starts_with("4.1.") || text.starts_with("4.2.") || has_one_of(text, words);
}

bool is_about_other_limit(std::string_view text) {
  constexpr std::array<std::string_view, 9> words{"storage", "disk",   "size",    "hops",     "many errors",
                                                  "timeout", "time l", "invalid", "timed out"};
  return has_one_of(text, words);
}

bool asks_for_fewer(std::string_view text) {
  constexpr std::array<std::string_view, 4> subjects{"connection", "concurren", "session", "simultaneous"};
  constexpr std::array<std::string_view, 4> limits{"too many", "limit", "exceed", "concurren"};
  constexpr std::array<std::string_view, 2> mails{"message", "mails"};
  return has_one_of(text, subjects) && has_one_of(text, limits) && !has_one_of(text, mails);
}

bool asks_for_lower_rate(std::string_view text) {
  constexpr std::array<std::string_view, 8> words{"throttl",       "too fast",  "slow down", "too many",
                                                  "too much mail", "ratelimit", "overlimit", "exceeded"};
  return has_one_of(text, words) || has_word(text, "rate") || has_word(text, "limit") ||
         has_word(text, "busy");
}

/// Some providers refuse for good what came too fast, and mean the next moment.
bool names_rate(std::string_view text) {
  constexpr std::array<std::string_view, 3> mails{"emails per ", "messages per ", "mails per "};
  constexpr std::array<std::string_view, 2> times{"per second", "per minute"};
  return has_one_of(text, mails) && has_one_of(text, times);
}

}  // namespace

bool is_configured_wish(int code, std::string_view text, const std::vector<std::string>& patterns) {
  if (code == 0) return false;
  const auto reply = fmt::format("{} {}", code, lower_case(text));
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return !pattern.empty() && reply.find(lower_case(pattern)) != std::string::npos;
  });
}

RelayWish relay_wish(SmtpStep step, int code, std::string_view words, delivery::RefusalSubject about) {
  using enum RelayWish;
  if (code < 400 || code >= 600 || about == delivery::RefusalSubject::everyone) return none;
  if (code >= 500) return step >= SmtpStep::mail && names_rate(words) ? lower_rate : none;
  if (code == 432) return fewer_at_once;
  if (step < SmtpStep::mail) return asks_for_fewer(words) ? fewer_at_once : none;
  if (code == 454 && step == SmtpStep::end) return lower_rate;
  // Postfix counts the recipients of a client in a time, and names the client.
  if (has_one_of(words, std::array<std::string_view, 1>{"too many recipients from"})) return lower_rate;
  if (is_about_recipient(words) || is_about_other_limit(words)) return none;
  if (asks_for_fewer(words)) return fewer_at_once;
  return asks_for_lower_rate(words) ? lower_rate : none;
}

}  // namespace mailroom::smtp
