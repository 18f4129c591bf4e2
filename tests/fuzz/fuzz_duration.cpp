// A duration that is read is written so that it is read again as the same.

#include "base/clock.hpp"
#include "fuzz/fuzz.hpp"

namespace mailroom::fuzz::fuzz_duration {
namespace {

constexpr std::int64_t longest = 100LL * 365 * 86'400'000;

void check(Milliseconds duration) {
  const auto text = format_duration(duration);
  require(parse_duration(text) == duration, "a duration is read back");
}

int run(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  if (const auto duration = parse_duration(fields.take())) {
    require(duration->count() >= 0 && duration->count() <= longest, "a duration is within its bounds");
    check(*duration);
  }
  const auto number = fields.take_number();
  if (number >= 0 && number <= longest) check(Milliseconds(number));
  format_duration(Milliseconds(number));
  return 0;
}

const Target target("duration", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_duration
