// A moment that is read is one that can be written; every number of seconds has a text.

#include "base/moment.hpp"
#include "base/text.hpp"
#include "fuzz/fuzz.hpp"

using namespace mailroom;
using fuzz::require;

namespace {

constexpr std::int64_t year_0 = -62'167'219'200;
constexpr std::int64_t year_10000 = 253'402'300'800;

void write(std::int64_t seconds, std::int64_t now) {
  const auto text = moment_text(seconds);
  require(is_printable(text) && !text.empty(), "a moment has a text");
  if (seconds >= year_0 && seconds < year_10000)
    require(parse_moment(text, now) == seconds, "a moment is read back");
  require(moment_from(seconds, now).starts_with(text), "a moment and its distance begin with the moment");
  const auto precise = precise_moment_text(seconds);
  require(is_printable(precise) && !precise.empty(), "a precise moment has a text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t now = 1'800'000'000;
  fuzz::Fields fields(data, size);
  const auto text = fields.take();
  if (const auto moment = parse_moment(text, now)) {
    require(*moment >= year_0 - 86'400 && *moment <= year_10000 + 86'400, "a moment is within its years");
    write(*moment, now);
  }
  const auto seconds = fields.take_number();
  write(seconds, now);
  write(now, now + seconds % 4'000'000'000);
  return 0;
}
