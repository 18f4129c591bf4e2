#include "cmd/reference/scd.hpp"

#include "shell_output.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"

namespace mailroom::test::scd_test {
namespace {

/// What man shows for the page `scd`, which the build's own script renders, in one line of 500 columns per
/// paragraph.
std::string shown(const std::string& scd) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "man1");
  // Debian's man.local keeps - and quotes ASCII, whatever the page says; others do not.
  directory.write("man.local", "");
  directory.write("man1/probe.1.scd", cmd::scd_head("probe", 1, "try it") + cmd::scd_heading("TEXT") + scd);
  const auto answer =
      run_shell("'" + source_directory +
                    "/cmd/reference/render_pages' scdoc . && mandoc -T lint -W error man1/probe.1 && "
                    "groff -M . -ww -k -man -T utf8 -P-cbou -rLL=500n man1/probe.1",
                directory);
  CHECK(answer.err.empty());
  REQUIRE(answer.status == 0);
  const auto start = answer.out.find("TEXT\n") + 5;
  return answer.out.substr(start, answer.out.find("mailroom " MAILROOM_VERSION, start) - start);
}

const std::vector<std::string> hostile{
    "--batch-limit",
    "a_b __c__ _d_ snake_case_",
    "*bold* **x** 2*3",
    R"(back\slash \fB \(aq \\ \e \- \* \_ end\)",
    "libpq's \"PG*\" `x^2` ~/x 'y'",
    "ends with ++",
    "c++ a+b ++",
    ".TH x",
    ". one",
    "...",
    "'br",
    "- item",
    "# heading",
    "## heading",
    "; comment",
    ": column",
    "| [ table",
    "[ [ table",
    "] table",
    "`` a ```b```",
    "```",
    "T{ x T}",
    "100% $HOME ${x} <a@b> & {}",
    "caf\xC3\xA9 \xE2\x80\xA6 \xE2\x82\xAC",
    "one. two! three? \\",
};

std::string line(std::size_t indent, const std::string& text) {
  return std::string(indent, ' ') + text + "\n";
}

}  // namespace

TEST_CASE("text that scdoc or roff would interpret is shown as it is") {
  std::string page;
  std::string expected;
  for (const auto& text : hostile) {
    page += cmd::scd_paragraphs(text) + "x " + cmd::scd_escaped(text) + " y\n\n" + "x " +
            cmd::scd_bold(text) + ", " + cmd::scd_italic(text) + " y\n\n" + cmd::scd_bold(text) + " ++\n" +
            cmd::scd_escaped(text) + "\n\n" + cmd::scd_verbatim(text + "\n  " + text + "\n");
    expected += line(7, text) + "\n" + line(7, "x " + text + " y") + "\n" +
                line(7, "x " + text + ", " + text + " y") + "\n" + line(7, text) + line(7, text) + "\n" +
                line(11, text) + line(13, text) + "\n";
  }
  CHECK(shown(page).find(expected) == 0);
}

TEST_CASE("the terms and paragraphs of items are shown as they are, at any depth") {
  std::string page;
  std::string expected;
  for (const auto& text : hostile) {
    page += cmd::scd_item(cmd::scd_escaped(text), {cmd::scd_escaped(text), "", cmd::scd_escaped(text)}) +
            cmd::scd_item(cmd::scd_italic(text), {cmd::scd_bold(text)}, 1) +
            cmd::scd_item(cmd::scd_escaped(text), {});
    expected += line(7, text) + line(11, text) + "\n" + line(11, text) + "\n" + line(11, text) +
                line(15, text) + "\n" + line(7, text) + "\n";
  }
  CHECK(shown(page).find(expected) == 0);
}

TEST_CASE("newlines and tabs in a paragraph become spaces") {
  CHECK(cmd::scd_escaped("one\n\ttwo") == "one  two");
  CHECK(cmd::scd_escaped("\n.two") == "** .two");
  CHECK(cmd::scd_bold("one\ntwo") == "*one two*");
  CHECK(cmd::scd_escaped("").empty());
  CHECK(cmd::scd_paragraphs("one\n.two\n\n.three") == "one .two\n\n**.three\n\n");
}

}  // namespace mailroom::test::scd_test
