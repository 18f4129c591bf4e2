// Templates that make a mail of no use to its reader.

#include "support/catch.hpp"
#include "templates/template_set.hpp"

namespace mailroom::test::mail_template_use_test {
namespace {

std::vector<std::string> warnings_of(const std::map<std::string, std::string>& texts) {
  templates::TemplateFiles files;
  files.directory = "t";
  files.texts = texts;
  return templates::TemplateSet(files).warnings();
}

const std::string no_link =
    ": it has neither {{link}} nor {{token}}: its reader can do nothing with the mail";
const std::string no_code = ": it has no {{code}}, which a recovery asks for";

}  // namespace

TEST_CASE("a part that is empty, or that nobody can use, is a warning") {
  const std::vector<std::string> empty{
      "t/activation.subject: the subject is empty",
      "t/activation.txt: it is empty: the mail is blank where HTML is not shown",
      "t/activation.html: it is empty, and the HTML is what readers are shown: the mail is blank"};
  CHECK(warnings_of({{"activation.subject", ""}, {"activation.txt", ""}, {"activation.html", ""}}) == empty);
  CHECK(warnings_of({{"activation.subject", "\n"},
                     {"activation.txt", " {{! nothing }}\r\n"},
                     {"activation.html", "<!-- {{link}} -->\n{{#code}}{{link}}{{/code}}{{> p}}"},
                     {"p.mustache", ""}}) == empty);
  CHECK(warnings_of({{"activation.txt", "Welcome, {{login}}."}}) ==
        std::vector<std::string>{"t/activation.txt" + no_link});
  CHECK(warnings_of({{"activation.txt", "{{#link}}Open it{{/link}}{{^link}}{{link}}{{/link}}"}}) ==
        std::vector<std::string>{"t/activation.txt" + no_link});
  CHECK(warnings_of({{"recovery.txt", "{{link}}"}, {"recovery.html", "{{login}}"}}) ==
        std::vector<std::string>{"t/recovery.txt" + no_code, "t/recovery.html" + no_link,
                                 "t/recovery.html" + no_code});
}

TEST_CASE("a part that shows the link or the token, and the code of a recovery, is none") {
  CHECK(warnings_of({{"activation.subject", "{{action}}"},
                     {"activation.txt", "{{> p}}"},
                     {"activation.html", "<!--[if mso]> x <![endif]--><a href=\"{{link}}\">Activate</a>"},
                     {"recovery.txt", "{{token}}{{#code}}{{code}}{{/code}}"},
                     {"recovery.html", "{{link}}{{{code}}}"},
                     {"p.mustache", "{{link}}"}})
            .size() == 1);  // of the unescaped code alone
}

TEST_CASE("a duration in English in a file of another locale is a warning") {
  const std::string words =
      ": {{expires_in}} is English in every locale; {{expires_in.minutes}}, {{expires_in.hours}} and "
      "{{expires_in.days}} are numbers";
  CHECK(warnings_of({{"x.subject", "s"},
                     {"x.txt", "{{expires_in}}"},
                     {"x.en-GB.subject", "s"},
                     {"x.en-GB.txt", "{{expires_in}}"},
                     {"x.de.subject", "s"},
                     {"x.de.txt", "{{> p}}\n{{expires_in.minutes}} {{expires_in}}"},
                     {"p.mustache", "{{expires_in}}"},
                     {"p.de.mustache", "{{expires_in}}"}}) ==
        std::vector<std::string>{"t/p.de.mustache:1" + words, "t/x.de.txt:2" + words});
}

TEST_CASE("HTML that Gmail cuts off is a warning, also where a partial makes it") {
  const auto warnings = [](std::size_t size) {
    return warnings_of({{"x.subject", "s"},
                        {"x.txt", "t"},
                        {"x.html", std::string(60'000, 'a') + "{{> p}}"},
                        {"p.mustache", std::string(size, 'b')}});
  };
  CHECK(warnings(40'000).empty());
  CHECK(warnings(60'000) ==
        std::vector<std::string>{
            "t/x.html: the HTML has 117 kB: Gmail cuts it off after 102 kB, with what is at its end"});
}

}  // namespace mailroom::test::mail_template_use_test
