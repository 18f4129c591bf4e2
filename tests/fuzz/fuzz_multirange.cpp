// The reader of int8multirange takes what PostgreSQL writes, reads it back the same, and takes nothing else.

#include <stdexcept>
#include <vector>

#include "cmd/events/event_text.hpp"
#include "fuzz/fuzz.hpp"
#include "selection/id_range.hpp"

namespace mailroom::fuzz::fuzz_multirange {
namespace {

void check_ranges(const std::vector<selection::IdRange>& ranges) {
  for (const auto& range : ranges)
    require(range.first < range.end, "a range has an id");
  require(selection::parse_id_ranges(selection::multirange_of(ranges)) == ranges, "ranges are read back");
  selection::id_ranges_text(ranges);
  cmd::ids_text({.record = queue::BatchRecord{.tokens = ranges}});
}

int run(const std::uint8_t* data, std::size_t size) {
  const auto text = text_of(data, size);
  try {
    check_ranges(selection::parse_id_ranges(text));
  } catch (const std::invalid_argument&) {
    // Nothing that PostgreSQL writes.
  }
  return 0;
}

const Target target("multirange", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_multirange
