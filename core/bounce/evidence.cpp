// Texts are in the words of Postfix, Exim, sendmail and others; paragraphs are all that they have in common.

#include "bounce/evidence.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "bounce/status_code.hpp"

namespace mailroom::bounce {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// An empty line, or one that begins with an address, which may stand behind a bullet or a code:
/// `<ada@mail.example>: no such user`.
bool begins_paragraph(std::string_view line) {
  line = trimmed(line);
  if (line.empty()) return true;
  for (int word = 0; word < 3 && !line.empty(); ++word) {
    const auto first = line.substr(0, line.find_first_of(" \t"));
    if (holds(first, "@")) return true;
    if (first.find_first_not_of("0123456789.-*>") != std::string_view::npos) return false;
    line = trimmed(line.substr(first.size()));
  }
  return false;
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
       {"- this is a copy of", "\n----- original message", "\nreturn-path:", "\nreceived: ",
        "-- unsent message", "-- message header", "-- returned message", "-- original message",
        "--original message", "--- original mail", "--- below this line", "-- the header of the original",
        "\noriginal message follows", "\nmessage headers follow", "\nincluded is a copy",
        "\noriginal message headers", "\nbegin forwarded message", "\nthe original message headers"})
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
  constexpr std::array<std::string_view, 12> signs{
      "in reply to end of data",    "in reply to data",
      "in response to end of data", "after end of data",
      "after sending data",         "did not like our final data",
      "did not like our data",      "failed after i sent the message",
      "for text command",           "[end_of_data]",
      "after data command",         "-smtp command data"};
  const bool is_data = std::any_of(signs.begin(), signs.end(), [&](auto sign) { return holds(words, sign); });
  // Sendmail's own words for it.
  const bool is_own = holds(words, ">>> data") && holds(words, "5.0.0 service unavailable");
  return (is_data || is_own) && !is_at_recipient(words);
}

bool is_at_recipient(std::string_view words) {
  return holds(words, "in reply to rcpt") || holds(words, "after rcpt") || holds(words, ">>> rcpt") ||
         holds(words, "[rcpt_to]") || holds(words, "does not like recipient") ||
         holds(words, "in response to rcpt") || holds(words, "rcpt to response") ||
         holds(words, "for rcpt command") ||
         // Yahoo refuses recipients after the content.
         holds(words, "delivery error: dd ");
}

bool is_of_address(std::string_view words) {
  return holds(words, "server has rejected address") ||
         // Outlook.com, of a recipient; others have these words without a status, for whatever they refuse.
         holds(words, "5.5.0 requested action not taken: mailbox unavailable") ||
         holds(words, "... user unknown") || holds(words, "... no such user") ||
         holds(words, "... user not exist");
}

}  // namespace mailroom::bounce
