// Both readers of int8multirange agree on what PostgreSQL writes, and take nothing that it does not.

#include <stdexcept>
#include <vector>

#include "accounts/id_range.hpp"
#include "cmd/event_text.hpp"
#include "feed/event.hpp"
#include "fuzz/fuzz.hpp"

using namespace mailroom;
using fuzz::require;

namespace {

std::string multirange_of(const std::vector<IdRun>& runs) {
  std::string text;
  for (const auto& run : runs)
    text +=
        (text.empty() ? "[" : ",[") + std::to_string(run.first) + "," + std::to_string(run.last + 1) + ")";
  return "{" + text + "}";
}

void check_runs(const std::vector<IdRun>& runs, std::string_view text) {
  for (const auto& run : runs)
    require(run.first <= run.last, "a run has an id");
  require(parse_multirange(multirange_of(runs)) == runs, "runs are read back");
  const auto ranges = parse_id_ranges(text);
  require(ranges.size() == runs.size(), "both readers see the same ranges");
  for (std::size_t i = 0; i < runs.size(); ++i)
    require(ranges[i].first == runs[i].first && ranges[i].end - 1 == runs[i].last, "both readers agree");
  id_ranges_text(ranges);
  Event event;
  event.tokens = runs;
  ids_text(event);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  try {
    check_runs(parse_multirange(text), text);
  } catch (const std::runtime_error&) {
    // Nothing that PostgreSQL writes.
  }
  try {
    parse_id_ranges(text);
  } catch (const std::invalid_argument&) {
    // The same.
  }
  return 0;
}
