// HTML of any bytes is made quiet, and once it is, nothing is left that would be loaded or run.

#include "base/text.hpp"
#include "fuzz/fuzz.hpp"
#include "preview/quiet_html.hpp"

namespace mailroom::fuzz::fuzz_quiet_html {
namespace {

std::size_t find_tag(const std::string& html, const char* tag) {
  return lower_case(html).find(tag);
}

int run(const std::uint8_t* data, std::size_t size) {
  const auto html = text_of(data, size);
  const preview::QuietOptions options{
      .file_of = [](std::string_view) { return "data:image/png;base64,AA=="; }};
  const auto quiet = preview::quiet_html(html, options);
  const auto again = preview::quiet_html(quiet.html, options);
  require(again.remote == 0, "nothing is left that another server has");
  require(find_tag(again.html, "<script") == find_tag(quiet.html, "<script"), "no script comes up");
  preview::quiet_html(html, {.loads_images = true, .follows_links = true});
  return 0;
}

const Target target("quiet_html", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_quiet_html
