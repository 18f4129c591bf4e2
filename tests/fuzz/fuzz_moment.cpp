// A moment that is read is one that can be written; every number of seconds has a text.

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "fuzz/fuzz.hpp"

namespace mailroom::fuzz::fuzz_moment {
namespace {

void write(Moment moment, Moment now) {
  const auto text = moment_text(moment);
  require(is_printable(text) && !text.empty(), "a moment has a text");
  if (moment >= year_0 && moment < year_10000)
    require(parse_moment(text, now) == moment, "a moment is read back");
  require(moment_from(moment, now).starts_with(text), "a moment and its distance begin with the moment");
  const auto precise = precise_moment_text(moment);
  require(is_printable(precise) && !precise.empty(), "a precise moment has a text");
}

int run(const std::uint8_t* data, std::size_t size) {
  constexpr Moment now = std::chrono::sys_seconds(std::chrono::seconds(1'800'000'000));
  Fields fields(data, size);
  const auto text = fields.take();
  if (const auto moment = parse_moment(text, now)) {
    constexpr std::chrono::days day{1};
    require(*moment >= year_0 - day && *moment <= year_10000 + day, "a moment is within its years");
    write(*moment, now);
  }
  const std::chrono::seconds seconds(fields.take_number());
  write(bounded_moment(seconds), now);
  write(now, now + seconds % 4'000'000'000);
  return 0;
}

const Target target("moment", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_moment
