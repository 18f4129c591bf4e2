#include "accounts/id_range.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <stdexcept>

namespace mailroom {
namespace {

/// Takes the number at the front of `text`, and the one character after it.
std::int64_t take_bound(std::string_view& text) {
  std::int64_t bound = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), bound);
  if (failure != std::errc() || rest == text.data() + text.size())
    throw std::invalid_argument("not a range of ids: " + std::string(text));
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return bound;
}

std::string range_text(const IdRange& range) {
  return range.first + 1 == range.end ? std::to_string(range.first)
                                      : fmt::format("{}-{}", range.first, range.end - 1);
}

}  // namespace

std::vector<IdRange> parse_id_ranges(std::string_view multirange) {
  std::vector<IdRange> ranges;
  for (auto start = multirange.find('['); start != std::string_view::npos; start = multirange.find('[')) {
    multirange.remove_prefix(start + 1);
    const auto first = take_bound(multirange);
    ranges.push_back({.first = first, .end = take_bound(multirange)});
  }
  return ranges;
}

std::string multirange_text(const std::vector<std::int64_t>& ids) {
  std::string text = "{";
  for (const auto id : ids)
    text += fmt::format("{}[{},{})", text.size() > 1 ? "," : "", id, id + 1);
  return text + "}";
}

std::int64_t count_ids(const std::vector<IdRange>& ranges) {
  std::int64_t count = 0;
  for (const auto& range : ranges)
    count += range.end - range.first;
  return count;
}

bool contains(const std::vector<IdRange>& ranges, std::int64_t id) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const auto& range) { return range.first <= id && id < range.end; });
}

std::string id_ranges_text(const std::vector<IdRange>& ranges) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.size() > most && i == most - 2) {
      return text + ", … " + range_text(ranges.back());
    }
    text += (i > 0 ? ", " : "") + range_text(ranges[i]);
  }
  return text;
}

}  // namespace mailroom
