// Parses the text of an int8multirange, and writes ranges for the server and for people.

#include "selection/id_range.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <stdexcept>

#include "base/printable.hpp"

namespace mailroom::selection {
namespace {

[[noreturn]] void refuse() {
  throw std::invalid_argument("not a multirange of ids");
}

std::int64_t take_id(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc()) refuse();
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::vector<IdRange> parse_id_ranges(std::string_view multirange) {
  std::vector<IdRange> ranges;
  if (!take(multirange, '{')) refuse();
  while (!multirange.starts_with('}')) {
    const bool is_next = ranges.empty() || take(multirange, ',');
    if (!is_next || !take(multirange, '[')) refuse();
    const auto first = take_id(multirange);
    if (!take(multirange, ',')) refuse();
    const auto end = take_id(multirange);
    if (!take(multirange, ')') || first >= end) refuse();
    ranges.push_back({.first = first, .end = end});
  }
  if (multirange != "}") refuse();
  return ranges;
}

std::vector<IdRange> to_id_ranges(const std::vector<std::int64_t>& ids) {
  std::vector<IdRange> ranges;
  for (const auto id : ids) {
    if (!ranges.empty() && ranges.back().end == id) {
      ++ranges.back().end;
    } else {
      ranges.push_back({.first = id, .end = id + 1});
    }
  }
  return ranges;
}

std::string multirange_text(const std::vector<std::int64_t>& ids) {
  std::string text = "{";
  for (const auto id : ids)
    text += fmt::format("{}[{},{})", text.size() > 1 ? "," : "", id, id + 1);
  return text + "}";
}

std::string multirange_of(const std::vector<IdRange>& ranges) {
  std::string text = "{";
  for (const auto& range : ranges)
    text += fmt::format("{}[{},{})", text.size() > 1 ? "," : "", range.first, range.end);
  return text + "}";
}

std::int64_t count_ids(const std::vector<IdRange>& ranges) {
  std::int64_t count = 0;
  for (const auto& range : ranges)
    count += range.end - range.first;
  return count;
}

std::int64_t count_common_ids(const std::vector<IdRange>& some, const std::vector<IdRange>& others) {
  std::int64_t count = 0;
  for (const auto& a : some) {
    for (const auto& b : others)
      count += std::max<std::int64_t>(0, std::min(a.end, b.end) - std::max(a.first, b.first));
  }
  return count;
}

bool contains(const std::vector<IdRange>& ranges, std::int64_t id) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const auto& range) { return range.first <= id && id < range.end; });
}

std::string id_range_text(const IdRange& range) {
  return range.first + 1 == range.end ? std::to_string(range.first)
                                      : fmt::format("{}-{}", range.first, range.end - 1);
}

std::string id_ranges_text(const std::vector<IdRange>& ranges) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.size() > most && i == most - 2) {
      return text + ", " + std::string(ellipsis()) + " " + id_range_text(ranges.back());
    }
    text += (i > 0 ? ", " : "") + id_range_text(ranges[i]);
  }
  return text;
}

}  // namespace mailroom::selection
