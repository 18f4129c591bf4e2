// Text of any bytes is made fit for a terminal's line, and stays as it is where it was.

#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/wording.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/hostile_batch.hpp"

namespace mailroom::fuzz::fuzz_text {
namespace {

std::int64_t characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

int run(const std::uint8_t* data, std::size_t size) {
  const std::string text(text_of(data, size));
  const bool is_clean = is_printable(text);
  require(is_clean == HostileBatch::is_line(text), "another reader of UTF-8 says the same");
  const auto shown = printable(text);
  require(is_printable(shown), "what is shown is printable");
  require(printable(shown) == shown, "showing it again changes nothing");
  require(!is_clean || characters(shown) == characters(text), "a character is replaced by one");
  require(!is_clean || is_printable(masked_address(text)), "a masked address is printable");
  masked_address(text);
  for (const std::size_t width : {0U, 1U, 2U, 7U, 40U}) {
    const auto cut = fit(text, width);
    require(display_width(cut) <= width, "a cut text has its width");
    require(!is_clean || is_printable(cut), "no character is cut in two");
  }
  nearest_word(text, {"activation", "password_recovery", text});
  return 0;
}

const Target target("text", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_text
