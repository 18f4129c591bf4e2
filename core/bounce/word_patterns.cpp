// A set of the starts of words decides for most phrases: the words are read once, not hundreds of times.

#include "bounce/word_patterns.hpp"

#include <algorithm>

namespace mailroom::bounce {
namespace {

constexpr std::size_t gap = 40;
constexpr unsigned char first_of_other_scripts = 0xd0;

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

/// True if `rest` follows within the gap, part by part.
bool follows(std::string_view words, std::string_view rest) {
  while (!rest.empty()) {
    const auto star = rest.find('*');
    const auto part = rest.substr(0, star);
    const auto at = words.substr(0, gap + part.size()).find(part);
    if (at == std::string_view::npos) return false;
    words.remove_prefix(at + part.size());
    rest = star == std::string_view::npos ? std::string_view() : rest.substr(star + 1);
  }
  return true;
}

}  // namespace

SearchedWords::SearchedWords(std::string_view words) : words_(words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (byte_at(words, i) >= first_of_other_scripts) has_other_scripts_ = true;
    const bool begins = i == 0 || !is_word_byte(words[i - 1]);
    if (begins && i + 3 <= words.size()) starts_.set(key_of(words.substr(i, 3)));
  }
}

std::size_t SearchedWords::key_of(std::string_view text) {
  return (byte_at(text, 0) * 961 + byte_at(text, 1) * 31 + byte_at(text, 2)) % keys;
}

WordPatterns::WordPatterns(std::string_view patterns) {
  while (!patterns.empty()) {
    const auto end = std::min(patterns.find('|'), patterns.size());
    const auto pattern = patterns.substr(0, end);
    const auto star = std::min(pattern.find('*'), pattern.size());
    patterns_.push_back({.first = pattern.substr(0, star),
                         .rest = pattern.substr(std::min(star + 1, pattern.size())),
                         .key = SearchedWords::key_of(pattern),
                         .begins_anywhere = byte_at(pattern, 0) >= first_of_other_scripts});
    patterns.remove_prefix(std::min(end + 1, patterns.size()));
  }
}

bool WordPatterns::fit(const SearchedWords& words) const {
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
    const bool may_fit =
        pattern.begins_anywhere ? words.has_other_scripts() : words.may_begin_with(pattern.key);
    return may_fit && fits(words.text(), pattern);
  });
}

bool WordPatterns::fits(std::string_view words, const Pattern& pattern) {
  const auto first = pattern.first;
  for (auto at = words.find(first); at != std::string_view::npos; at = words.find(first, at + 1)) {
    const bool begins = at == 0 || pattern.begins_anywhere || !is_word_byte(words[at - 1]);
    if (begins && follows(words.substr(at + first.size()), pattern.rest)) return true;
  }
  return false;
}

}  // namespace mailroom::bounce
