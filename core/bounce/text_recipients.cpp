// Texts of servers are of no grammar; what they have in common is where an address stands in its line. A line
// that names the next recipient ends what is said of the one before.

#include "bounce/text_recipients.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.hpp"
#include "bounce/delivery_status.hpp"

namespace mailroom::bounce {
namespace {

using Addresses = std::vector<std::string>;

bool holds_part(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_listed(const Addresses& addresses, const std::string& address) {
  return std::find(addresses.begin(), addresses.end(), address) != addresses.end();
}

/// `<ada@mail.example>:` and `'ada@mail.example'` as the address; empty if the word is none.
std::string address_in_word(std::string_view word) {
  constexpr std::string_view quotes = "<>()[]{};:,.'\"*`!?=";
  const auto begin = word.find_first_not_of(quotes);
  if (begin == std::string_view::npos) return {};
  word.remove_prefix(begin);
  if (word.starts_with("mailto:")) word.remove_prefix(7);
  // Exchange: `ada@mail.example<mailto:ada@mail.example>`
  word = word.substr(0, word.find_first_of("<>()[]\"|"));
  const auto end = word.find_last_not_of(quotes);
  if (end == std::string_view::npos) return {};
  word = word.substr(0, end + 1);
  const auto at = word.rfind('@');
  const bool is_address = at != std::string_view::npos && at > 0 && at + 1 < word.size() &&
                          word.find_first_of("/\\:,;=") == std::string_view::npos;
  return is_address ? report_address(word) : std::string();
}

std::vector<std::string_view> words_of_line(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view spaces = " \t\r";
  constexpr std::size_t most = 60;
  for (auto from = line.find_first_not_of(spaces); from != std::string_view::npos && words.size() < most;) {
    const auto end = std::min(line.find_first_of(spaces, from), line.size());
    words.push_back(line.substr(from, end - from));
    from = line.find_first_not_of(spaces, end);
  }
  return words;
}

/// `-`, `*`, `>>>` and the like before an address.
bool is_bullet(std::string_view word) {
  return word.size() <= 3 && word.find_first_not_of("-*>.#+") == std::string_view::npos;
}

bool is_number(std::string_view word) {
  return word.find_first_not_of("0123456789.-") == std::string_view::npos;
}

/// A line about the sender, or about whom to ask.
bool is_of_others(std::string_view line) {
  constexpr std::array<std::string_view, 22> signs{
      "mail from",        "from:",      "sender:",       "from ",       "sent by",     "contact",
      "postmaster",       "reply-to",   "help",          "support@",    "questions",   "forward",
      "http://",          "https://",   "please e-mail", "please send", "please mail", "envelope-from",
      "original message", "message-id", "message id",    "abuse"};
  return std::any_of(signs.begin(), signs.end(), [&](auto sign) { return holds_part(line, sign); });
}

/// How surely a line names a recipient.
enum class Sureness : std::uint8_t { by_place, by_label, by_any };

/// The address that begins the line, behind a bullet, or behind the code of an answer: `550
/// <ada@x.example>...`
std::string address_at_begin(const std::vector<std::string_view>& words) {
  for (std::size_t i = 0; i < words.size() && i < 4; ++i) {
    const bool is_enclosed = words[i].front() == '<' || words[i].front() == '"' || words[i].front() == '\'';
    auto address = address_in_word(words[i]);
    const bool is_behind_code = i > 0 && is_number(words[i - 1]);
    if (!address.empty()) return is_behind_code && !is_enclosed ? std::string() : address;
    if (!is_bullet(words[i]) && !is_number(words[i])) return {};
  }
  return {};
}

/// The address of `RCPT TO:<ada@mail.example>` where the dialogue is shown.
std::string address_of_command(std::string_view line, const std::vector<std::string_view>& words) {
  const bool is_dialogue = !words.empty() && (words[0] == ">>>" || words[0].starts_with("rcpt"));
  const auto at = line.find("rcpt to:");
  return is_dialogue && at != std::string_view::npos ? address_in_word(trimmed(line.substr(at + 8)))
                                                     : std::string();
}

/// The only address of a line that ends with it, or that has a label before: `unknown user:
/// ada@mail.example`.
std::string address_behind_label(std::string_view line, const std::vector<std::string_view>& words) {
  constexpr std::size_t longest = 160;
  if (words.size() < 2 || line.size() > longest || is_of_others(line)) return {};
  auto last = address_in_word(words.back());
  const bool has_label = words[0].ends_with(':') || words[1].ends_with(':');
  for (std::size_t i = 1; has_label && last.empty() && i < std::min<std::size_t>(words.size(), 4); ++i)
    last = address_in_word(words[i]);
  return last;
}

std::string address_of_line(std::string_view line, Sureness sureness) {
  const auto words = words_of_line(line);
  if (words.empty() || !holds_part(line, "@")) return {};
  auto address = address_at_begin(words);
  if (address.empty()) address = address_of_command(line, words);
  if (!address.empty() || sureness == Sureness::by_place) return address;
  if (sureness == Sureness::by_label) return address_behind_label(line, words);
  if (is_of_others(line)) return {};
  for (const auto word : words) {
    address = address_in_word(word);
    if (!address.empty()) return address;
  }
  return {};
}

/// What is said before an address, and is about the next one.
bool begins_dialogue(std::string_view line) {
  line = trimmed(line);
  return line.starts_with("while talking to") || line.starts_with("... while talking to") ||
         holds_part(line, " (smtp)...");
}

class Sections {
 public:
  Sections(Sureness sureness, const Addresses& others, std::size_t limit)
      : sureness_(sureness), others_(others), limit_(limit) {}

  void add(std::string_view line) {
    const auto address = address_of_line(line, sureness_);
    if (!address.empty() && !is_listed(others_, lower_case(address))) {
      begin(address);
    } else if (begins_dialogue(line)) {
      current_ = nullptr;
      before_.clear();
    }
    if (current_ == nullptr) {
      before_.append(line).append("\n");
    } else {
      current_->about.append(line).append("\n");
    }
  }

  std::vector<TextRecipient> take() { return std::move(found_); }

 private:
  void begin(const std::string& address) {
    const auto same = std::find_if(found_.begin(), found_.end(), [&](const TextRecipient& recipient) {
      return lower_case(recipient.address) == lower_case(address);
    });
    if (same == found_.end() && found_.size() >= limit_) return;
    const auto at = static_cast<std::size_t>(same - found_.begin());
    if (same == found_.end()) found_.push_back({.address = address, .about = {}});
    current_ = &found_[at];
    // The text before the first is about all of them, unless it shows how one was refused.
    if (at > 0 || begins_dialogue(before_)) current_->about += before_;
    before_.clear();
  }

  Sureness sureness_;
  const Addresses& others_;
  std::size_t limit_;
  std::vector<TextRecipient> found_;
  TextRecipient* current_ = nullptr;
  std::string before_;
};

}  // namespace

std::vector<TextRecipient> recipients_in_text(const std::string& text, const std::vector<std::string>& others,
                                              std::size_t limit) {
  for (const auto sureness : {Sureness::by_place, Sureness::by_label, Sureness::by_any}) {
    Sections sections(sureness, others, limit);
    for (std::size_t from = 0; from < text.size();) {
      const auto end = std::min(text.find('\n', from), text.size());
      sections.add(std::string_view(text).substr(from, end - from));
      from = end + 1;
    }
    auto found = sections.take();
    if (found.size() == 1) found.front().about = text;
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace mailroom::bounce
