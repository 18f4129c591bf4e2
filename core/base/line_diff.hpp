#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// A line of one of two texts, or of both.
struct DiffLine {
  enum class Side { both, before, after };
  Side side = Side::both;
  std::string text;

  bool operator==(const DiffLine&) const = default;
};

/// The lines of `before` and `after` in their order, the common ones (a longest common subsequence) once.
/// Takes time and memory in proportion to the product of their numbers of lines.
std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after);

/// `lines` with no more than `context` common lines beside what differs; a common line `…` stands for
/// those that are left out.
std::vector<DiffLine> only_changes(const std::vector<DiffLine>& lines, std::size_t context);

}  // namespace mailroom
