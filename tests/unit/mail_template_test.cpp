#include "base/error.hpp"
#include "support/catch.hpp"
#include "templates/template_set.hpp"
#include "templates/template_values.hpp"

namespace mailroom::test::mail_template_test {
namespace {

using Texts = std::map<std::string, std::string>;

templates::TemplateSet set_of(const Texts& texts, const std::vector<std::string>& ignored = {}) {
  return templates::TemplateSet(
      templates::TemplateFiles{.directory = "t", .texts = texts, .ignored = ignored});
}

templates::TemplateValues values() {
  return {.action = "recovery",
          .email = "user1@mail.example",
          .login = "user1",
          .link = "https://app.example/recovery?token=T&x=1",
          .token = "T",
          .code = "12345",
          .valid_from = Moment(std::chrono::seconds(1'795'253'415)),
          .expires_at = Moment(std::chrono::seconds(1'795'254'315))};
}

constexpr std::size_t large = 16 * 1024 * 1024;

templates::RenderedMail mail_of(const templates::TemplateSet& set, const templates::TemplateValues& with) {
  return std::get<templates::RenderedMail>(set.render(
      {.name = with.action}, std::get<templates::TemplateData>(templates::template_scope(with, "")), large));
}

/// The text of a recovery mail made with this template.
std::string rendered(const std::string& text, const templates::TemplateValues& with = values(),
                     Texts partials = {}) {
  partials["recovery.txt"] = text;
  return *mail_of(set_of(partials), with).text;
}

/// The message and hint of the error, or `no error`.
std::string error_of(const Texts& texts) {
  try {
    set_of(texts);
    return "no error";
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::configuration);
    return std::string(error.what()) + (error.hint().empty() ? "" : " (" + error.hint() + ")");
  }
}

constexpr auto known = " (variables: action, code, email, expires_at, expires_in, link, login, token)";

}  // namespace

TEST_CASE("the built-in mails are complete, and say nothing that is empty") {
  const templates::TemplateSet set(templates::TemplateFiles{});
  CHECK(set.warnings().empty());
  auto with = values();
  auto mail = mail_of(set, with);
  CHECK(mail.subject == "Choose a new password");
  CHECK(*mail.text ==
        "Hello user1,\n\n"
        "Someone asked for a new password for your account. To choose one, open this link:\n\n"
        "https://app.example/recovery?token=T&x=1\n\n"
        "You are asked for this code: 12345\n\n"
        "The link is valid for 15 minutes, until 2026-11-21 09:45 UTC.\n\n"
        "If you did not ask for this, ignore this mail: your password stays as it is.\n");
  REQUIRE(mail.html);
  CHECK(mail.html->find("<a href=\"https://app.example/recovery?token=T&amp;x=1\"") != std::string::npos);
  CHECK(mail.html->find("<strong>12345</strong>") != std::string::npos);
  with.code = "";
  mail = mail_of(set, with);
  CHECK(mail.text->find("token=T&x=1\n\nThe link") != std::string::npos);
  CHECK(mail.html->find("code") == std::string::npos);
  with.action = "activation";
  mail = mail_of(set, with);
  CHECK(mail.subject == "Activate your account");
  CHECK(mail.text->find("12345") == std::string::npos);
  CHECK(mail.text->find("\n\nhttps://app.example/recovery?token=T&x=1\n\n") != std::string::npos);
}

TEST_CASE("each variable has its value") {
  const std::string all =
      "{{action}}|{{code}}|{{email}}|{{expires_at}}|{{expires_in}}|{{link}}|{{login}}|{{token}}";
  CHECK(rendered(all) ==
        "recovery|12345|user1@mail.example|2026-11-21 09:45 UTC|15 "
        "minutes|https://app.example/recovery?token=T&x=1|user1|T");
  auto with = values();
  with.action = "activation";
  with.code = std::nullopt;
  CHECK(*mail_of(
             set_of({{"activation.txt", "{{action}}|{{code}}|{{^code}}none{{/code}}{{#code}}some{{/code}}"}}),
             with)
             .text == "activation||none");
}

TEST_CASE("a value is escaped in HTML only, and never parsed as a template") {
  auto with = values();
  with.login = "<b>&\"'{{token}}{{> p}}{{=<% %>=}}";
  const auto set = set_of({{"recovery.subject", "{{login}}"},
                           {"recovery.txt", "{{login}} {{{login}}} {{&login}}"},
                           {"recovery.html", "{{login}}"},
                           {"p.mustache", "partial"}});
  const auto mail = mail_of(set, with);
  CHECK(mail.subject == with.login);
  CHECK(*mail.text == *with.login + " " + *with.login + " " + *with.login);
  CHECK(*mail.html == "&lt;b&gt;&amp;&quot;&#39;{{token}}{{&gt; p}}{{=&lt;% %&gt;=}}");
}

TEST_CASE("a variable is no partial of its name") {
  auto with = values();
  with.login = "{{token}}";
  CHECK(rendered("{{> login}}", with, {{"login.mustache", "the file: {{login}}"}}) == "the file: {{token}}");
  CHECK(
      error_of({{"recovery.txt", "{{> login}}"}}) ==
      "t/recovery.txt:1: there is no partial login (a partial is a file NAME.mustache in the same directory)");
}

TEST_CASE("sections, comments and partials are rendered as Mustache does") {
  CHECK(rendered("a{{! comment }}b{{#login}}c{{/login}}{{^login}}d{{/login}}") == "abc");
  CHECK(rendered("{{#code}}{{#login}}both{{/login}}{{/code}}") == "both");
  CHECK(rendered("{{> a}}-{{> b}}", values(), {{"a.mustache", "A{{> b}}"}, {"b.mustache", "{{login}}"}}) ==
        "Auser1-user1");
  CHECK(rendered("a\r\n{{ login }}\r\n") == "a\r\nuser1\r\n");
  CHECK(rendered("\xEF\xBB\xBF"
                 "a") == "a");
  CHECK(rendered("{ {x} }") == "{ {x} }");
  CHECK(rendered("").empty());
}

TEST_CASE("a subject is one line, with or without a line end in its file") {
  for (const std::string end : {"", "\n", "\r\n"}) {
    const auto set =
        set_of({{"recovery.subject", "Hello {{> name}}!" + end}, {"name.mustache", "{{login}}" + end}});
    CHECK(mail_of(set, values()).subject == "Hello user1!");
  }
}

TEST_CASE("an operator's text without HTML is sent without HTML") {
  const auto set = set_of({{"recovery.txt", "x"}, {"activation.html", "<p>x</p>"}});
  CHECK_FALSE(mail_of(set, values()).html.has_value());
  auto with = values();
  with.action = "activation";
  CHECK(*mail_of(set, with).html == "<p>x</p>");
  std::string sources;
  for (const auto& source : set.sources()) {
    const auto kind = source.kind == templates::TemplateSource::Kind::builtin ? "built-in"
                      : source.kind == templates::TemplateSource::Kind::file  ? source.path
                                                                              : "none";
    sources += source.file + ": " + kind + "\n";
  }
  CHECK(sources ==
        "activation.subject: built-in\n"
        "activation.txt: built-in\n"
        "activation.html: t/activation.html\n"
        "recovery.subject: built-in\n"
        "recovery.txt: t/recovery.txt\n"
        "recovery.html: none\n");
}

TEST_CASE("what is probably wrong is a warning") {
  const auto set = set_of({{"activation.html", "{{login}}\n{{{login}}}{{> p}}\n{{&link}}{{> p}}"},
                           {"activation.txt", "{{{login}}}"},
                           {"p.mustache", "{{&token}}"},
                           {"recovery.html", "x"}},
                          {"activation.text", "README"});
  CHECK(
      set.warnings() ==
      std::vector<std::string>{
          "t/activation.text is not used; did you mean activation.txt?", "t/README is not used",
          "t/recovery.html is accompanied by the built-in text; add recovery.txt",
          "t/activation.html:2: login is not escaped, so a value may change the HTML; write {{login}}",
          "t/p.mustache:1: token is not escaped, so a value may change the HTML; write {{token}}",
          "t/activation.html:3: link is not escaped, so a value may change the HTML; write {{link}}",
          "t/activation.txt: it has neither {{link}} nor {{token}}: its reader can do nothing with the mail",
          "t/recovery.html: it has neither {{link}} nor {{token}}: its reader can do nothing with the mail",
          "t/recovery.html: it has no {{code}}, which a recovery asks for"});
}

TEST_CASE("a hostile template is refused with file, line and reason") {
  const auto deep = [](std::size_t depth) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i)
      text += "{{#login}}";
    for (std::size_t i = 0; i < depth; ++i)
      text += "{{/login}}";
    return text;
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"{{login", "1: a tag has no }}"},
      {"a\n\n{{", "3: a tag has no }}"},
      {"{{{login}}", "1: a tag has no }}}"},
      {"{{{", "1: a tag has no }}}"},
      {"\n{{#login}}", "2: the section login has no end; close it with {{/login}}"},
      {"{{/login}}", "1: the end of a section login that has no beginning"},
      {"{{#login}}\n{{#code}}\n{{/login}}{{/code}}",
       "3: the end of a section login within the section code of line 2"},
      {"{{#login}}{{/login}}{{/login}}", "1: the end of a section login that has no beginning"},
      {"{{=<% %>=}}<%login%>", "1: the delimiters cannot be changed: a tag is always {{name}}"},
      {"{{{= x}}}", "1: the delimiters cannot be changed: a tag is always {{name}}"},
      {deep(33), "1: sections are nested more than 32 deep"},
      {"a\n{{logn}}", std::string("2: unknown variable {{logn}}; did you mean {{login}}?") + known},
      {"{{}}", std::string("1: unknown variable {{}}") + known},
      {"{{.}}", std::string("1: unknown variable {{.}}") + known},
      {"{{login.size}}", std::string("1: unknown variable {{login.size}}; did you mean {{login}}?") + known},
      {"{{#missing}}{{/missing}}", std::string("1: unknown variable {{missing}}") + known},
      {"{{^missing}}{{/missing}}", std::string("1: unknown variable {{missing}}") + known},
      {"{{#code}}{{#login}}{{nothing}}{{/login}}{{/code}}",
       std::string("1: unknown variable {{nothing}}") + known},
      {"{{{nothing}}}", std::string("1: unknown variable {{nothing}}") + known},
      {"{{\x01}}", "1: a control character"},
      {"a\n\x1b[2J", "2: a control character"},
      {"a\rb", "1: a control character"},
      {std::string("a\0b", 3), "1: a control character"},
      {"a\n\n\xff", "3: invalid UTF-8"},
      {std::string(templates::largest_template + 1, 'x'), "1: it is larger than 256 KiB"},
  };
  for (const auto& [text, error] : cases) {
    INFO(text.substr(0, 100));
    CHECK(error_of({{"recovery.txt", text}}) == "t/recovery.txt:" + error);
  }
  CHECK(error_of({{"recovery.txt", deep(32)}}) == "no error");
  CHECK(error_of({{"recovery.txt", std::string(templates::largest_template, 'x')}}) == "no error");
  CHECK(error_of({{"recovery.subject", "a\nb"}}) ==
        "t/recovery.subject:2: a subject has one line, and so has a partial in it");
  CHECK(error_of({{"recovery.subject", "a\n\n"}}) ==
        "t/recovery.subject:2: a subject has one line, and so has a partial in it");
  CHECK(error_of({{"recovery.subject", "a\tb"}}) == "t/recovery.subject:1: a subject must not have a tab");
}

TEST_CASE("a partial that is missing, endless or too large is refused in the file that includes it") {
  const Texts partials{{"self.mustache", "\n{{> self}}"},
                       {"a.mustache", "{{> b}}"},
                       {"b.mustache", "{{#code}}\n{{> a}}{{/code}}"},
                       {"big.mustache", std::string(200 * 1024, 'x')}};
  const auto error_with = [&](const std::string& file, const std::string& text) {
    auto texts = partials;
    texts[file] = text;
    return error_of(texts);
  };
  const std::vector<std::pair<std::string, std::string>> missing{
      {"{{> missing}}", "1: there is no partial missing (partials: a, b, big, self)"},
      {"{{> ../secret}}", "1: there is no partial ../secret (partials: a, b, big, self)"},
      {"{{>}}", "1: there is no partial  (partials: a, b, big, self)"},
      // A template is no partial, so it cannot include itself.
      {"{{> recovery}}", "1: there is no partial recovery (partials: a, b, big, self)"},
      {"{{> recovery.txt}}", "1: there is no partial recovery.txt (partials: a, b, big, self)"},
  };
  for (const auto& [text, error] : missing)
    CHECK(error_with("recovery.txt", text) == "t/recovery.txt:" + error);
  CHECK(error_with("recovery.txt", "{{> self}}") ==
        "t/self.mustache:2: the partial self includes itself: self > self");
  CHECK(error_with("recovery.html", "{{> a}}") == "t/b.mustache:2: the partial a includes itself: a > b > a");
  CHECK(error_with("recovery.txt", "{{> big}}{{> big}}{{> big}}{{> big}}{{> big}}") == "no error");
  CHECK(error_with("recovery.txt", "{{> big}}{{> big}}{{> big}}{{> big}}{{> big}}\n{{> big}}") ==
        "t/recovery.txt:2: with its partials it is larger than 1024 KiB");
}

TEST_CASE("partials may not be nested without end, in whatever order they are met") {
  Texts texts;
  for (int i = 0; i < 33; ++i)
    texts["p" + std::to_string(i) + ".mustache"] = "{{> p" + std::to_string(i + 1) + "}}";
  texts["p33.mustache"] = "end";
  texts["recovery.txt"] = "{{> p2}}";
  CHECK(error_of(texts) == "no error");
  texts["recovery.txt"] = "{{> p1}}";
  CHECK(error_of(texts) == "t/p32.mustache:1: partials are nested more than 32 deep");
  // Each is known by the time the next one includes it.
  std::string backwards;
  for (int i = 33; i >= 1; --i)
    backwards += "{{> p" + std::to_string(i) + "}}";
  texts["recovery.txt"] = backwards;
  CHECK(error_of(texts) == "t/p1.mustache:1: partials are nested more than 32 deep");
}

}  // namespace mailroom::test::mail_template_test
