// A table of common lengths, which is small: the definition of an object has few lines.

#include "base/line_diff.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mailroom {
namespace {

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  auto lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

/// lengths[i][j] is the length of the longest common subsequence of before[i…] and after[j…].
std::vector<std::vector<std::size_t>> common_lengths(const Lines& before, const Lines& after) {
  std::vector<std::vector<std::size_t>> lengths(before.size() + 1,
                                                std::vector<std::size_t>(after.size() + 1));
  for (auto i = before.size(); i-- > 0;) {
    for (auto j = after.size(); j-- > 0;) {
      lengths[i][j] =
          before[i] == after[j] ? lengths[i + 1][j + 1] + 1 : std::max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  return lengths;
}

}  // namespace

std::vector<DiffLine> diff_lines(std::string_view before_text, std::string_view after_text) {
  const auto before = lines_of(before_text);
  const auto after = lines_of(after_text);
  const auto lengths = common_lengths(before, after);
  std::vector<DiffLine> lines;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < before.size() || j < after.size()) {
    if (i < before.size() && j < after.size() && before[i] == after[j]) {
      lines.push_back({DiffLine::Side::both, std::string(before[i++])});
      ++j;
    } else if (j == after.size() || (i < before.size() && lengths[i + 1][j] >= lengths[i][j + 1])) {
      lines.push_back({DiffLine::Side::before, std::string(before[i++])});
    } else {
      lines.push_back({DiffLine::Side::after, std::string(after[j++])});
    }
  }
  return lines;
}

std::vector<DiffLine> only_changes(const std::vector<DiffLine>& lines, std::size_t context) {
  std::vector<bool> is_kept(lines.size());
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (lines[at].side == DiffLine::Side::both) continue;
    for (auto i = at - std::min(at, context); i < std::min(at + context + 1, lines.size()); ++i)
      is_kept[i] = true;
  }
  std::vector<DiffLine> kept;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (is_kept[at]) {
      kept.push_back(lines[at]);
    } else if (at == 0 || is_kept[at - 1]) {
      kept.push_back({DiffLine::Side::both, "…"});
    }
  }
  return kept;
}

}  // namespace mailroom
