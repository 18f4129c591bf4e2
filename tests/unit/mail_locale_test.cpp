// Templates of any name, and which of their files a reader's locale chooses.

#include "base/error.hpp"
#include "support/catch.hpp"
#include "templates/template_set.hpp"

namespace mailroom::test::mail_locale_test {
namespace {

using Texts = std::map<std::string, std::string>;

templates::TemplateSet set_of(const Texts& texts, const std::vector<std::string>& ignored = {}) {
  return templates::TemplateSet(
      templates::TemplateFiles{.directory = "t", .texts = texts, .ignored = ignored});
}

/// `subject|text|html`, or why there is no mail.
std::string mail_of(const templates::TemplateSet& set, const std::string& name,
                    const std::string& locale = "") {
  const auto mail = set.render({.name = name, .locale = locale}, {}, 1024);
  if (const auto* refusal = std::get_if<mail::Refusal>(&mail)) return "refused: " + refusal->reason;
  const auto& made = std::get<templates::RenderedMail>(mail);
  return made.subject + "|" + made.text.value_or("-") + "|" + made.html.value_or("-");
}

std::string error_of(const Texts& texts) {
  try {
    set_of(texts);
    return "no error";
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::configuration);
    return std::string(error.what()) + (error.hint().empty() ? "" : " (" + error.hint() + ")");
  }
}

std::string chain_of(const std::string& locale) {
  std::string all;
  for (const auto& tag : templates::locale_chain(locale))
    all += tag + "/";
  return all;
}

}  // namespace

TEST_CASE("a locale stands for itself and what it is part of") {
  CHECK(chain_of("") == "/");
  CHECK(chain_of("de") == "de//");
  CHECK(chain_of("de-AT") == "de-at/de//");
  CHECK(chain_of("de_AT.UTF-8") == "de-at/de//");
  CHECK(chain_of("zh-Hant-TW") == "zh-hant-tw/zh-hant/zh//");
  for (const std::string none :
       {"C", "POSIX", "d", "../../etc/passwd", "de-", "de--AT", "-", "{{{", "germany", "de\nAT", "\xff",
        "de-AT-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    INFO(none);
    CHECK(chain_of(none) == "/");
  }
}

TEST_CASE("the name of a file says template, locale and part") {
  const auto read = [](const std::string& file) {
    const auto name = templates::parse_template_file(file);
    return name ? name->name + " " + name->locale + " " + std::string(templates::suffix_of(name->part))
                : "none";
  };
  CHECK(read("receipt.txt") == "receipt  .txt");
  CHECK(read("receipt.de-AT.txt") == "receipt de-at .txt");
  CHECK(read("Order_2-b.pt_BR.subject") == "Order_2-b pt-br .subject");
  CHECK(read("foot.de.mustache") == "foot de .mustache");
  CHECK(read("a.b.mustache") == "a.b  .mustache");
  for (const std::string file : {"receipt.text", "receipt", ".txt", "receipt.v2.txt", "a b.txt", "-x.txt",
                                 "receipt.txt~", "README.md"})
    CHECK(read(file) == "none");
}

TEST_CASE("each part is chosen for itself, by the most precise locale") {
  const auto set = set_of({{"receipt.subject", "S"},
                           {"receipt.de.subject", "S de"},
                           {"receipt.txt", "T{{> foot}}"},
                           {"receipt.de-AT.txt", "T at{{> foot}}"},
                           {"receipt.html", "H{{> foot}}"},
                           {"foot.mustache", " f"},
                           {"foot.de.mustache", " f-de"}});
  CHECK(mail_of(set, "receipt") == "S|T f|H f");
  CHECK(mail_of(set, "receipt", "de") == "S de|T f-de|H f-de");
  CHECK(mail_of(set, "receipt", "de_AT") == "S de|T at f-de|H f-de");
  CHECK(mail_of(set, "receipt", "de-CH") == "S de|T f-de|H f-de");
  CHECK(mail_of(set, "receipt", "fr") == "S|T f|H f");
  CHECK(mail_of(set, "receipt", "../../etc/passwd") == "S|T f|H f");
}

TEST_CASE("a template has a subject, and text or HTML or both") {
  const auto set = set_of({{"a.subject", "S"},
                           {"a.html", "H"},
                           {"b.txt", "T"},
                           {"c.subject", "S"},
                           {"d.de.subject", "S"},
                           {"d.de.txt", "T"}});
  CHECK(mail_of(set, "a") == "S|-|H");
  CHECK(mail_of(set, "b") == "refused: the template b has no subject");
  CHECK(mail_of(set, "c", "de") == "refused: the template c has no text for de");
  CHECK(mail_of(set, "d", "de") == "S|T|-");
  CHECK(mail_of(set, "d", "fr") == "refused: the template d has no subject for fr");
  CHECK(mail_of(set, "recipt") == "refused: there is no template recipt");
  CHECK(mail_of(set, "activatoin") == "refused: there is no template activatoin; did you mean activation?");
  CHECK(mail_of(set, "../a") == "refused: there is no template ../a");
  CHECK(set.warnings() == std::vector<std::string>{
                              "b has no subject for all locales, so its mails may be rejected; add b.subject",
                              "c has no text for all locales, so its mails may be rejected; add c.txt",
                              "d has no subject for all locales, so its mails may be rejected; add d.subject",
                              "d has no text for all locales, so its mails may be rejected; add d.txt"});
}

TEST_CASE("a part that is not translated with the others is a warning") {
  CHECK(set_of({{"receipt.subject", "S"},
                {"receipt.txt", "T"},
                {"receipt.html", "H"},
                {"receipt.de.txt", "T"},
                {"receipt.de-AT.txt", "T"},
                {"receipt.de.subject", "S"}})
            .warnings() ==
        std::vector<std::string>{
            "t/receipt.de.subject is accompanied by receipt.html; add receipt.de.html",
            "t/receipt.de-AT.txt is accompanied by receipt.de.subject; add receipt.de-AT.subject",
            "t/receipt.de-AT.txt is accompanied by receipt.html; add receipt.de-AT.html"});
  CHECK(
      set_of({{"activation.de.txt", "{{link}}"}}).warnings() ==
      std::vector<std::string>{
          "t/activation.de.txt is accompanied by the built-in activation.subject; add activation.de.subject"});
}

TEST_CASE("a template without a file of the locale that most others have is a warning") {
  Texts files;
  for (const std::string name : {"activation", "receipt", "reminder", "welcome"}) {
    for (const std::string part : {".subject", ".txt"}) {
      files[name + part] = "{{link}}";
      files[name + ".de" + part] = "{{link}}";
    }
  }
  files["reminder.fr.subject"] = files["reminder.fr.txt"] = "one is a start";
  CHECK(set_of(files).warnings().empty());
  // A locale with a region is one of its language.
  files["welcome.de-AT.subject"] = files["welcome.de-AT.txt"] = "x";
  files.erase("receipt.de.subject");
  files.erase("receipt.de.txt");
  CHECK(
      set_of(files).warnings() ==
      std::vector<std::string>{
          "receipt has no file for de, though 3 of 4 templates have one: whoever reads de gets another language"});
  files.erase("welcome.de.subject");
  files.erase("welcome.de.txt");
  files.erase("welcome.de-AT.subject");
  files.erase("welcome.de-AT.txt");
  CHECK(set_of(files).warnings().size() == 2);
  files.erase("reminder.de.subject");
  files.erase("reminder.de.txt");
  CHECK(set_of(files).warnings().empty());
}

TEST_CASE("a template of any name may name anything, of sound form") {
  CHECK(error_of({{"receipt.txt", "{{anything.at.all}}{{#x}}{{.}}{{/x}}"}}) == "no error");
  for (const std::string name : {"", "a.", ".a", "a..b", ".."}) {
    CHECK(error_of({{"receipt.txt", "\n{{" + name + "}}"}}) ==
          "t/receipt.txt:2: {{" + name +
              "}} is no name (write {{name}}, {{name.of.a.part}}, or {{.}} for the item of a list)");
  }
  CHECK(error_of({{"receipt.txt", "{{{"}}) == "t/receipt.txt:1: a tag has no }}}");
  CHECK(error_of({{"receipt.txt", "a\n{{#items}}"}}) ==
        "t/receipt.txt:2: the section items has no end; close it with {{/items}}");
  // The mails of accounts have no data.
  CHECK(
      error_of({{"activation.de.txt", "{{total}}"}}).starts_with("t/activation.de.txt:1: unknown variable"));
  CHECK(error_of(
            {{"receipt.txt", "{{total}}{{> p}}"}, {"p.mustache", "{{total}}"}, {"recovery.txt", "{{> p}}"}})
            .starts_with("t/p.mustache:1: unknown variable {{total}}"));
}

TEST_CASE("files that are in each other's way are refused") {
  CHECK(error_of({{"receipt.de-AT.txt", "a"}, {"receipt.de_at.txt", "b"}}) ==
        "t/receipt.de-AT.txt and t/receipt.de_at.txt are for the same locale "
        "(remove one: case does not matter in a locale)");
  CHECK(error_of({{"receipt.txt", "{{> foot}}"}, {"foot.de.mustache", "x"}}) ==
        "t/receipt.txt:1: the partial foot has no file for every locale "
        "(add foot.mustache, which stands in for all locales)");
  CHECK(error_of({{"receipt.fr.txt", "{{> foot}}"}, {"foot.de.mustache", "x"}})
            .starts_with("t/receipt.fr.txt:1: the partial foot has no file for fr"));
  CHECK(error_of({{"receipt.de-AT.txt", "{{> foot}}"}, {"foot.de.mustache", "x"}}) == "no error");
  CHECK(error_of({{"receipt.txt", "{{> a}}"}, {"a.mustache", ""}, {"a.de.mustache", "\n{{> a}}"}}) ==
        "t/a.de.mustache:2: the partial a includes itself: a > a");
}

TEST_CASE("the sources name built-in templates first, then the operator's") {
  std::string all;
  const auto set = set_of({{"receipt.txt", "a"},
                           {"receipt.de.txt", "a"},
                           {"receipt.subject", "a"},
                           {"about.txt", "a"},
                           {"recovery.de.html", "a"}});
  for (const auto& source : set.sources())
    all += source.file + (source.kind == templates::TemplateSource::Kind::builtin ? "* " : " ");
  CHECK(all ==
        "activation.subject* activation.txt* activation.html* recovery.subject* recovery.txt* recovery.html* "
        "about.txt receipt.subject receipt.txt receipt.de.txt recovery.de.html ");
}

}  // namespace mailroom::test::mail_locale_test
