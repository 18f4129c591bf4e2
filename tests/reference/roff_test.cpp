#include "cmd/reference/roff.hpp"

#include "support/catch.hpp"

using namespace mailroom;

TEST_CASE("text that roff would interpret is escaped") {
  CHECK(roff_escaped("plain text, as it is") == "plain text, as it is");
  CHECK(roff_escaped("--batch-limit") == "\\-\\-batch\\-limit");
  CHECK(roff_escaped(R"(a\b)") == R"(a\eb)");
  CHECK(roff_escaped("libpq's \"PG*\"") == R"(libpq\(aqs \(dqPG*\(dq)");
  CHECK(roff_escaped("`x^2` ~") == R"(\(gax\(ha2\(ga \(ti)");
  CHECK(roff_escaped("./mailroom.yaml") == "\\&./mailroom.yaml");
  CHECK(roff_escaped("in ./mailroom.yaml") == "in ./mailroom.yaml");
  CHECK(roff_escaped("one\ntwo") == "one two");
  CHECK(roff_escaped("caf\xC3\xA9 \xE2\x80\xA6 \xF0\x9F\x93\xAE") == R"(caf\[u00E9] \[u2026] \[u1F4EE])");
  CHECK(roff_escaped("").empty());
}

TEST_CASE("the same sources produce the same page") {
  const auto page = [] {
    ManPage made("mailroom-probe", 1, "1.2.3");
    made.section("NAME");
    made.line("probe");
    return made.text();
  };
  CHECK(page() == page());
  CHECK(page().find(".TH \"MAILROOM\\-PROBE\" \"1\" \"\" \"mailroom 1.2.3\" \"mailroom manual\"\n") !=
        std::string::npos);
}

TEST_CASE("the first paragraph after a heading needs no request, later ones do") {
  ManPage page("x", 1, "1");
  const auto head = page.text().size();
  page.section("DESCRIPTION");
  page.paragraphs("one.\n\n.two");
  CHECK(page.text().substr(head) == ".SH \"DESCRIPTION\"\none.\n.PP\n\\&.two\n");
}
