// Texts are in the words of Postfix, Exim, sendmail and others; paragraphs are all that they have in common.

#include "bounce/evidence.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mailroom {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

std::string text_about(std::string_view text, std::string_view address, bool is_only_one) {
  if (is_only_one) return std::string(text);
  std::string about;
  if (address.empty()) return about;
  const auto wanted = lower_case(address);
  std::string paragraph;
  const auto finish = [&] {
    if (holds(lower_case(paragraph), wanted)) about += paragraph;
    paragraph.clear();
  };
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    const auto line = text.substr(from, end - from);
    if (trimmed(line).empty()) finish();
    paragraph.append(line).append("\n");
    from = end + 1;
  }
  finish();
  return about;
}

// A transcript of sendmail does not tell: it may show the answers to RCPT behind DATA, since it sends both at
// once.
bool is_after_data(std::string_view text) {
  const auto words = lower_case(text);
  const bool is_data = holds(words, "in reply to end of data") || holds(words, "in reply to data") ||
                       holds(words, "after end of data");
  return is_data && !holds(words, "in reply to rcpt") && !holds(words, "after rcpt");
}

}  // namespace mailroom
