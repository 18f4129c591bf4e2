// Sets of ids, of which a batch, gap or replay may have thousands, as ranges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::selection {

/// Ids from `first` up to, but not including, `end`.
struct IdRange {
  std::int64_t first = 0;
  std::int64_t end = 0;

  bool operator==(const IdRange&) const = default;
};

/// Reads PostgreSQL's text of an int8multirange with finite bounds: `{[51,54),[60,61)}`. Throws
/// std::invalid_argument for anything else.
std::vector<IdRange> parse_id_ranges(std::string_view multirange);

/// Converts `ids`, which are ascending and unique, to ranges.
std::vector<IdRange> to_id_ranges(const std::vector<std::int64_t>& ids);

/// `ids` as the text of an int8multirange: `{[51,52),[60,61)}`.
std::string multirange_text(const std::vector<std::int64_t>& ids);
std::string multirange_of(const std::vector<IdRange>& ranges);

std::int64_t count_ids(const std::vector<IdRange>& ranges);
/// The number of ids that are in both.
std::int64_t count_common_ids(const std::vector<IdRange>& some, const std::vector<IdRange>& others);
bool contains(const std::vector<IdRange>& ranges, std::int64_t id);

/// `51-53`, or `60` for a single id.
std::string id_range_text(const IdRange& range);

/// `51-53, 60`; of more than five ranges the first three and the last: `1, 3, 5, … 99`.
std::string id_ranges_text(const std::vector<IdRange>& ranges);

}  // namespace mailroom::selection
