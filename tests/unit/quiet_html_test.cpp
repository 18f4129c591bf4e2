// What is taken out of the HTML of a mail that a page shows, and that all else stays as it is.

#include "preview/quiet_html.hpp"

#include "support/catch.hpp"

namespace mailroom::test::quiet_html_test {
namespace {

std::string quiet(std::string_view html, preview::QuietOptions options = {}) {
  return preview::quiet_html(html, options).html;
}

}  // namespace

TEST_CASE("HTML without anything to take out stays byte by byte") {
  for (const std::string html :
       {"", "text", "a < b & c > d", "<", "<p", "</", "<!-- <script>no</script> -->",
        "<!--[if mso]><table><tr><td><![endif]-->", "<p style='color: red'>x</p\n>",
        "<br/><IMG alt=x /><svg><path d=x /></svg>", "<style>p > b { color: red }</style>", "<a name=x>y</a>",
        "<td width = '10' bgcolor=#fff>", "<!-- open", "<p title=\"a > b\">x", "<a href=\"#part\">"}) {
    INFO(html);
    CHECK(quiet(html) == html);
  }
}

TEST_CASE("scripts, frames, forms and what redirects are taken out") {
  CHECK(quiet("a<script>x</script>b") == "ab");
  CHECK(quiet("a<SCRIPT src=x></sCript >b<script>never ends") == "ab");
  CHECK(quiet("<iframe src=x>y</iframe><object data=x>z</object><embed src=x>") == "z");
  CHECK(quiet("<form action='/x'><input name=a></form>") == "<input name=a>");
  CHECK(
      quiet("<meta http-equiv=refresh content='0; url=x'><base href=x><link rel=stylesheet href=x>").empty());
  CHECK(quiet("<<script></script>script>") == "<<!---->script>");
  CHECK(quiet("<meta charset=utf-8>") == "<meta charset=utf-8>");
  CHECK(quiet("<img OnError=x alt=y><svg onload=x />") == "<img alt=y><svg />");
  CHECK(quiet("<button formaction=x form=y autofocus>b") == "<button>b");
}

TEST_CASE("a link leads nowhere and says where it would lead, unless it is to be followed") {
  CHECK(quiet("<a href=\"https://shop.example/?a=1&amp;b\" target=_top>x</a>") ==
        "<a href=\"#not-followed\" title=\"https://shop.example/?a=1&amp;b\">x</a>");
  CHECK(quiet("<a title=t href=x>") == "<a title=t href=\"#not-followed\">");
  CHECK(quiet("<a href='javascript:x'>", {.follows_links = true}) ==
        "<a href=\"#not-followed\" title=\"javascript:x\">");
  CHECK(quiet("<a href='https://shop.example/'>", {.follows_links = true}) ==
        "<a href=\"https://shop.example/\" target=\"_blank\">");
}

TEST_CASE("what other servers have is counted, and loaded if that is asked for") {
  const std::string html =
      "<img src=https://a.example/1.png><td background='//b.example/2.png' style=\"background: "
      "url('http://c.example/3.png')\"><img srcset='https://a.example/4.png 2x'>"
      "<style>@import 'https://d.example/x'; p { background: URL(https://c.example/5.png) }</style>";
  const auto without = preview::quiet_html(html, {});
  CHECK(without.remote == 5);
  CHECK(without.html.find("example") == std::string::npos);
  const auto with = preview::quiet_html(html, {.loads_images = true});
  CHECK(with.remote == 5);
  for (const std::string url :
       {"\"https://a.example/1.png\"", "\"https://b.example/2.png\"", "url('http://c.example/3.png')",
        "https://a.example/4.png 2x", "url('https://c.example/5.png')"}) {
    INFO(with.html);
    CHECK(with.html.find(url) != std::string::npos);
  }
  CHECK(with.html.find("@import") == std::string::npos);
  CHECK(quiet("<img src=x.png>") == "<img>");
  CHECK(quiet("<img src='data:image/gif;base64,AA=='>") == "<img src=\"data:image/gif;base64,AA==\">");
}

TEST_CASE("a file of the mail is shown in its place") {
  const preview::QuietOptions options{.file_of = [](std::string_view id) -> std::optional<std::string> {
    return id == "logo" ? std::optional<std::string>("data:image/png;base64,AA==") : std::nullopt;
  }};
  CHECK(quiet("<img src=\"cid:logo\">", options) == "<img src=\"data:image/png;base64,AA==\">");
  CHECK(quiet("<img src=\"CID:other\">", options) == "<img>");
}

}  // namespace mailroom::test::quiet_html_test
