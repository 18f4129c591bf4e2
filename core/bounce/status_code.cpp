// Finds codes in text, and says what those that have one meaning mean.

#include "bounce/status_code.hpp"

#include <algorithm>
#include <array>

namespace mailroom::bounce {
namespace {

struct StatusRule {
  std::string_view detail;  ///< without the class
  BounceReason reason;
};

/// RFC 3463, RFC 7372, RFC 7504, RFC 7505 and the registry of IANA. The class does not matter.
constexpr std::array<StatusRule, 50> status_rules{{
    {"1.1", BounceReason::user_unknown},     {"1.2", BounceReason::host_unknown},
    {"1.3", BounceReason::user_unknown},     {"1.6", BounceReason::has_moved},
    {"1.7", BounceReason::sender_rejected},  {"1.8", BounceReason::sender_rejected},
    {"1.9", BounceReason::system},           {"1.10", BounceReason::not_accept},
    {"2.1", BounceReason::suspended},        {"2.2", BounceReason::mailbox_full},
    {"2.3", BounceReason::message_too_big},  {"2.4", BounceReason::system},
    {"3.1", BounceReason::mailbox_full},     {"3.2", BounceReason::system},
    {"3.3", BounceReason::system},           {"3.4", BounceReason::message_too_big},
    {"3.5", BounceReason::system},           {"4.1", BounceReason::network},
    {"4.2", BounceReason::network},          {"4.3", BounceReason::network},
    {"4.4", BounceReason::host_unknown},     {"4.5", BounceReason::rate_limited},
    {"4.6", BounceReason::network},          {"4.7", BounceReason::expired},
    {"5.1", BounceReason::system},           {"5.2", BounceReason::system},
    {"5.3", BounceReason::rate_limited},     {"5.4", BounceReason::system},
    {"5.5", BounceReason::system},           {"6.1", BounceReason::content},
    {"6.2", BounceReason::content},          {"6.3", BounceReason::content},
    {"7.1", BounceReason::policy},           {"7.2", BounceReason::policy},
    {"7.8", BounceReason::relaying_denied},  {"7.13", BounceReason::suspended},
    {"7.17", BounceReason::filtered},        {"7.20", BounceReason::authentication},
    {"7.21", BounceReason::authentication},  {"7.22", BounceReason::authentication},
    {"7.23", BounceReason::authentication},  {"7.24", BounceReason::authentication},
    {"7.25", BounceReason::blocked},         {"7.26", BounceReason::authentication},
    {"7.27", BounceReason::sender_rejected}, {"7.28", BounceReason::rate_limited},
    {"7.509", BounceReason::authentication}, {"4.310", BounceReason::host_unknown},
    {"1.350", BounceReason::user_unknown},   {"1.351", BounceReason::user_unknown},
}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_class(char c) {
  return c == '2' || c == '4' || c == '5';
}

/// The digits at `from`: at most three, with no further behind; 0 for none.
std::size_t digits_at(std::string_view text, std::size_t from) {
  std::size_t count = 0;
  while (from + count < text.size() && is_digit(text[from + count]))
    ++count;
  return count <= 3 ? count : 0;
}

/// The length of the status that begins at `from`; 0 if there is none.
std::size_t status_at(std::string_view text, std::size_t from) {
  if (from + 5 > text.size() || !is_class(text[from]) || text[from + 1] != '.') return 0;
  const auto subject = digits_at(text, from + 2);
  if (subject == 0) return 0;
  const auto dot = from + 2 + subject;
  if (dot >= text.size() || text[dot] != '.') return 0;
  const auto detail = digits_at(text, dot + 1);
  if (detail == 0) return 0;
  const auto end = dot + 1 + detail;
  // The end of a sentence is no fourth number.
  if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) return 0;
  if (end < text.size() && is_word(text[end])) return 0;
  return end - from;
}

}  // namespace

std::string find_status(std::string_view text) {
  for (std::size_t i = 0; i + 5 <= text.size(); ++i) {
    if (i > 0 && (is_word(text[i - 1]) || text[i - 1] == '.')) continue;
    if (const auto length = status_at(text, i); length > 0) return std::string(text.substr(i, length));
  }
  return {};
}

int find_reply_code(std::string_view text) {
  for (std::size_t i = 0; i + 3 <= text.size(); ++i) {
    if (!is_class(text[i]) || text[i + 1] > '5' || digits_at(text, i) != 3) continue;
    const char before = i == 0 ? ' ' : text[i - 1];
    const char behind = i + 3 == text.size() ? ' ' : text[i + 3];
    constexpr std::string_view starts = " \t\r\n;<('\":";
    constexpr std::string_view ends = " \t\r\n-,";
    if (starts.find(before) != std::string_view::npos && ends.find(behind) != std::string_view::npos)
      return (text[i] - '0') * 100 + (text[i + 1] - '0') * 10 + (text[i + 2] - '0');
  }
  return 0;
}

BounceReason reason_of_status(std::string_view status) {
  if (status.size() < 5) return BounceReason::undetermined;
  const auto detail = status.substr(2);
  const auto* const found = std::find_if(status_rules.begin(), status_rules.end(),
                                         [&](const StatusRule& rule) { return rule.detail == detail; });
  if (found != status_rules.end()) return found->reason;
  // Providers have many numbers of their own for their policies.
  return detail.starts_with("7.") ? BounceReason::policy : BounceReason::undetermined;
}

BounceReason reason_of_code(int code) {
  switch (code) {
    case 452:
    case 552:
      return BounceReason::mailbox_full;
    case 521:
    case 556:
      return BounceReason::not_accept;  // RFC 7504
    case 421:
      return BounceReason::system;
    case 523:
      return BounceReason::message_too_big;
    default:
      return BounceReason::undetermined;
  }
}

}  // namespace mailroom::bounce
