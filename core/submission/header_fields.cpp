// RFC 5322, section 2.2; blanks before the colon are taken, as section 4.5 wants.

#include "submission/header_fields.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mailroom::submission {
namespace {

bool is_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c > 32 && c < 127; });
}

/// The place behind a field that begins at `at`, with its folded lines.
std::size_t end_of_field(std::string_view mail, std::size_t at) {
  do {
    const auto end = mail.find("\r\n", at);
    at = end == std::string_view::npos ? mail.size() : end + 2;
  } while (at < mail.size() && (mail[at] == ' ' || mail[at] == '\t'));
  return at;
}

}  // namespace

SplitMail split_mail(std::string_view mail) {
  SplitMail split;
  std::size_t at = 0;
  while (at < mail.size() && !mail.substr(at).starts_with("\r\n")) {
    const auto end = end_of_field(mail, at);
    const auto whole = mail.substr(at, end - at);
    const auto colon = whole.find(':');
    const auto name = colon == std::string_view::npos ? std::string_view() : trimmed(whole.substr(0, colon));
    if (!is_name(name) || whole.starts_with(' ') || whole.starts_with('\t')) break;
    split.fields.push_back({lower_case(name), trimmed(whole.substr(colon + 1)), whole});
    at = end;
  }
  split.rest = mail.substr(at);
  return split;
}

}  // namespace mailroom::submission
