// Phrases that are searched for in the words of a server, hundreds at a time.
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>
#include <vector>

namespace mailroom::bounce {

/// Words in lower case, and with which bytes they begin, so that most phrases need no search. Refers to
/// `words`.
class SearchedWords {
 public:
  explicit SearchedWords(std::string_view words);

  std::string_view text() const { return words_; }
  /// False: no word begins with the bytes of this number (key_of()).
  bool may_begin_with(std::size_t key) const { return starts_[key]; }
  bool has_other_scripts() const { return has_other_scripts_; }

  /// The number of the first three bytes of `text`, which has as many.
  static std::size_t key_of(std::string_view text);

 private:
  static constexpr std::size_t keys = 4096;

  std::string_view words_;
  std::bitset<keys> starts_;
  bool has_other_scripts_ = false;
};

/// Phrases with `|` between them, each of three bytes or more. Each begins at the start of a word; `*` stands
/// for up to 40 bytes.
class WordPatterns {
 public:
  /// Refers to `patterns`.
  explicit WordPatterns(std::string_view patterns);

  bool fit(const SearchedWords& words) const;

 private:
  struct Pattern {
    std::string_view first;  ///< before the first `*`
    std::string_view rest;
    std::size_t key;
    bool begins_anywhere;  ///< Cyrillic ones leave out a letter that may be a capital, other scripts have no
                           ///< spaces
  };

  static bool fits(std::string_view words, const Pattern& pattern);

  std::vector<Pattern> patterns_;
};

}  // namespace mailroom::bounce
