// Texts are in the words of Postfix, Exim, sendmail and others; paragraphs are all that they have in common.

#include "bounce/evidence.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "bounce/status_code.hpp"

namespace mailroom {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// An empty line, or one as `<ada@mail.example>: no such user`.
bool begins_paragraph(std::string_view line) {
  line = trimmed(line);
  const auto first = line.substr(0, line.find_first_of(" \t"));
  return line.empty() || (first.ends_with(':') && holds(first, "@"));
}

/// Calls `visit` with each line, without its end.
template <typename Visit>
void each_line(std::string_view text, Visit visit) {
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    visit(text.substr(from, end - from));
    from = end + 1;
  }
}

}  // namespace

std::string people_text(std::string_view text) {
  constexpr std::size_t longest = 8192;
  const auto words = lower_case(text.substr(0, longest));
  auto end = words.size();
  for (const auto* const line :
       {"- this is a copy of", "\n----- original message", "\nreturn-path:", "\nreceived: from"})
    end = std::min(end, words.find(line));
  return words.substr(0, end);
}

std::string text_about(const std::string& text, std::string_view address, bool is_only_one) {
  if (is_only_one) return text;
  std::string about;
  if (address.empty()) return about;
  // For each of a thousand recipients.
  constexpr std::size_t longest = 1000;
  const auto wanted = lower_case(address);
  std::size_t begin = 0;
  const auto finish = [&](std::size_t end) {
    const auto paragraph = std::string_view(text).substr(begin, end - begin);
    if (about.size() < longest && holds(paragraph, wanted))
      about.append(paragraph.substr(0, longest)).append("\n");
    begin = end;
  };
  each_line(text, [&](std::string_view line) {
    if (begins_paragraph(line)) finish(static_cast<std::size_t>(line.data() - text.data()));
  });
  finish(text.size());
  return about;
}

std::string_view reply_words(std::string_view text) {
  auto begin = std::string_view::npos;
  auto end = text.size();
  each_line(text, [&](std::string_view line) {
    const auto at = static_cast<std::size_t>(line.data() - text.data());
    if (begin == std::string_view::npos && find_reply_code(line) != 0) {
      begin = at;
    } else if (begin != std::string_view::npos && end == text.size() && begins_paragraph(line)) {
      end = at;
    }
  });
  return begin == std::string_view::npos ? std::string_view() : trimmed(text.substr(begin, end - begin));
}

// A transcript of sendmail does not tell: it may show the answers to RCPT behind DATA, since it sends both at
// once.
// IronPort has two sentences for refusals: this one where it was not the recipient that was refused.
bool is_after_data(std::string_view words) {
  if (holds(words, "other mail system problem")) return true;
  const bool is_data = holds(words, "in reply to end of data") || holds(words, "in reply to data") ||
                       holds(words, "after end of data");
  return is_data && !is_at_recipient(words);
}

bool is_at_recipient(std::string_view words) {
  return holds(words, "in reply to rcpt") || holds(words, "after rcpt") || holds(words, ">>> rcpt") ||
         holds(words, "[rcpt_to]") || holds(words, "does not like recipient");
}

}  // namespace mailroom
