// The diff with which migrate verify shows how an object differs from its migration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// A line of one of two texts or of both.
struct DiffLine {
  enum class Side { both, before, after };
  Side side = Side::both;
  std::string text;

  bool operator==(const DiffLine&) const = default;
};

/// The lines of `before` and `after` in order; lines of their longest common subsequence appear once. Time
/// and memory are proportional to the product of the numbers of lines.
std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after);

/// `lines` with at most `context` common lines around each change; a common line `…` replaces those omitted.
std::vector<DiffLine> only_changes(const std::vector<DiffLine>& lines, std::size_t context);

}  // namespace mailroom
