// Regular expressions. The only user of <regex>, whose templates each file that includes it would compile
// anew.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// Whether `a` and `A` are two letters.
enum class LetterCase { matters, ignored };

/// An expression as ECMAScript has them, compiled once. Copies share it, and any thread may use it.
///
/// The library recurses over the text: what strangers send must be cut to a few thousand bytes before.
class Pattern {
 public:
  /// The whole match, then each group; empty for a group that took no part.
  using Groups = std::vector<std::string>;

  /// Throws std::regex_error for an expression that is none. So does each of the others if a match takes too
  /// much memory or time.
  explicit Pattern(const std::string& expression, LetterCase letter_case = LetterCase::matters);

  /// True if all of `text` is a match.
  bool matches(std::string_view text) const;
  /// True if a part of `text` is a match.
  bool occurs_in(std::string_view text) const;

  /// The match that is all of `text`.
  std::optional<Groups> whole(std::string_view text) const;
  /// The match that `text` begins with.
  std::optional<Groups> at_start(std::string_view text) const;
  /// The first match in `text`.
  std::optional<Groups> first(std::string_view text) const;
  /// All matches in `text`, none of which overlap, in their order.
  std::vector<Groups> all(std::string_view text) const;

  /// `text` with `replacement` for each match, in which `$1` stands for a group and `$&` for the match.
  std::string replaced(std::string_view text, const std::string& replacement) const;
  /// The same for the first match alone.
  std::string replaced_first(std::string_view text, const std::string& replacement) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace mailroom
