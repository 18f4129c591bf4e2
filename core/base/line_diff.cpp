#include "base/line_diff.hpp"

#include <algorithm>

namespace mailroom {
namespace {

using Lines = std::vector<std::string>;

Lines split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
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
  const auto before = split(before_text);
  const auto after = split(after_text);
  const auto lengths = common_lengths(before, after);
  std::vector<DiffLine> lines;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < before.size() || j < after.size()) {
    if (i < before.size() && j < after.size() && before[i] == after[j]) {
      lines.push_back({DiffLine::Side::both, before[i++]});
      ++j;
    } else if (j == after.size() || (i < before.size() && lengths[i + 1][j] >= lengths[i][j + 1])) {
      lines.push_back({DiffLine::Side::before, before[i++]});
    } else {
      lines.push_back({DiffLine::Side::after, after[j++]});
    }
  }
  return lines;
}

std::vector<DiffLine> only_changes(const std::vector<DiffLine>& lines, std::size_t context) {
  const auto is_near_change = [&](std::size_t at) {
    const auto first = at - std::min(at, context);
    const auto last = std::min(at + context, lines.size() - 1);
    for (auto i = first; i <= last; ++i) {
      if (lines[i].side != DiffLine::Side::both) return true;
    }
    return false;
  };
  std::vector<DiffLine> kept;
  bool skipping = false;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const bool keep = is_near_change(at);
    if (keep) {
      kept.push_back(lines[at]);
    } else if (!skipping) {
      kept.push_back({DiffLine::Side::both, "…"});
    }
    skipping = !keep;
  }
  return kept;
}

}  // namespace mailroom
