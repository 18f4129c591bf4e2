// What templates make of data: Mustache, with refusals where it leaves blanks.

#include "support/catch.hpp"
#include "templates/template_set.hpp"
#include "templates/template_values.hpp"

namespace mailroom::test::mail_mustache_test {
namespace {

using Texts = std::map<std::string, std::string>;

constexpr std::size_t large = 1024 * 1024;

/// The part of a receipt, or why there is none.
std::string shown(const std::string& text, const std::string& data, Texts files = {},
                  templates::MailPart part = templates::MailPart::text, std::size_t largest = large) {
  files["receipt.subject"] = part == templates::MailPart::subject ? text : "Your order";
  if (part != templates::MailPart::subject) files["receipt" + std::string(templates::suffix_of(part))] = text;
  if (part == templates::MailPart::subject) files["receipt.txt"] = "x";
  const templates::TemplateSet set(templates::TemplateFiles{.directory = "t", .texts = files, .ignored = {}});
  const templates::TemplateValues values{.action = "message", .email = "ada@example.org"};
  const auto scope = templates::template_scope(values, data);
  if (const auto* refusal = std::get_if<mail::Refusal>(&scope)) return "refused: " + refusal->reason;
  const auto mail = set.render({.name = "receipt"}, std::get<templates::TemplateData>(scope), largest);
  if (const auto* refusal = std::get_if<mail::Refusal>(&mail)) return "refused: " + refusal->reason;
  const auto& made = std::get<templates::RenderedMail>(mail);
  return part == templates::MailPart::subject ? made.subject
         : part == templates::MailPart::html  ? *made.html
                                              : *made.text;
}

}  // namespace

TEST_CASE("names reach into objects, lists and what surrounds them") {
  const std::string order =
      R"({"order": 17, "total": 12.50, "customer": {"name": "Ada", "address": {"city": "Wien"}},
          "items": [{"name": "tea", "price": "4.00"}, {"name": "cup", "price": "8.50", "order": "its own"}],
          "tags": ["new", "paid"], "grid": [[1, 2], [3]], "paid": true, "note": null})";
  CHECK(shown("{{order}} {{total}} {{email}} {{action}}", order) == "17 12.50 ada@example.org message");
  CHECK(shown("{{customer.name}}, {{customer.address.city}}", order) == "Ada, Wien");
  CHECK(shown("{{#customer}}{{name}} in {{address.city}}, {{order}}{{/customer}}", order) ==
        "Ada in Wien, 17");
  CHECK(shown("{{#items}}{{name}}: {{price}} ({{order}});{{/items}}", order) ==
        "tea: 4.00 (17);cup: 8.50 (its own);");
  CHECK(shown("{{#tags}}<{{.}}>{{/tags}}", order) == "<new><paid>");
  CHECK(shown("{{#grid}}{{#.}}{{.}},{{/.}};{{/grid}}", order) == "1,2,;3,;");
  CHECK(shown("{{#paid}}paid{{/paid}}{{^paid}}open{{/paid}} {{paid}}", order) == "paid true");
  CHECK(shown("{{#note}}note{{/note}}{{^note}}none{{/note}}{{note}}", order) == "none");
  CHECK(shown("{{#order}}{{.}}{{/order}}", order) == "17");
  CHECK(shown("{{#customer.address}}{{city}}{{/customer.address}}", order) == "Wien");
}

TEST_CASE("a line that has a section's tag or a comment alone is left out") {
  const std::string data = R"({"items": [{"n": "a"}, {"n": "b"}], "none": [], "yes": true})";
  CHECK(shown("Items:\n{{#items}}\n- {{n}}\n{{/items}}\nEnd\n", data) == "Items:\n- a\n- b\nEnd\n");
  CHECK(shown("Items:\r\n  {{#items}}\r\n- {{n}}\r\n\t{{/items}} \r\nEnd\r\n", data) ==
        "Items:\r\n- a\r\n- b\r\nEnd\r\n");
  CHECK(shown("a\n{{#none}}\nb\n{{/none}}\n{{^none}}\nc\n{{/none}}\nd", data) == "a\nc\nd");
  CHECK(shown("a\n{{! a comment\n of two lines }}\nb", data) == "a\nb");
  CHECK(shown("a\n  {{! at the end }}", data) == "a\n");
  CHECK(shown("{{#yes}}\na\n{{/yes}}", data) == "a\n");
  CHECK(shown(" {{#yes}}a{{/yes}} \n", data) == " a \n");
  CHECK(shown("{{#yes}} {{! b }}\na{{/yes}}", data) == " \na");
  CHECK(shown("| {{yes}}\n", data) == "| true\n");
}

TEST_CASE("a partial is put in without its last line end") {
  const Texts partials{{"row.mustache", "{{n}} x\n"}, {"foot.mustache", "--\nBye\n"}};
  CHECK(shown("{{#items}}\n{{> row}}\n{{/items}}\n{{> foot}}\n", R"({"items": [{"n": 1}, {"n": 2}]})",
              partials) == "1 x\n2 x\n--\nBye\n");
  CHECK(shown("[{{> foot}}]", "", partials) == "[--\nBye]");
  CHECK(shown("Order {{> row}}", R"({"n": "7"})", partials, templates::MailPart::subject) == "Order 7 x");
}

TEST_CASE("values are escaped in HTML, and never parsed") {
  const std::string data = R"({"a": "<b>&\"'{{b}}{{{", "{{": "odd"})";
  CHECK(shown("{{a}}", data) == "<b>&\"'{{b}}{{{");
  CHECK(shown("{{a}}", data, {}, templates::MailPart::html) == "&lt;b&gt;&amp;&quot;&#39;{{b}}{{{");
  CHECK(shown("{{{a}}}{{& a }}", data, {}, templates::MailPart::html) == "<b>&\"'{{b}}{{{<b>&\"'{{b}}{{{");
}

TEST_CASE("a name that nothing has is refused with template, line and name") {
  const std::string data =
      R"({"total": 1, "items": [{"name": "tea"}, {}], "list": [1], "object": {"a": {}}})";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"a\n\n{{totel}}", "3: neither the data nor mailroom has {{totel}}; did you mean {{total}}?"},
      {"{{#missing}}x{{/missing}}", "1: neither the data nor mailroom has {{missing}}"},
      {"\n{{^missing}}x{{/missing}}", "2: neither the data nor mailroom has {{missing}}"},
      {"{{#items}}\n{{name}}\n{{/items}}", "2: neither the data nor mailroom has {{name}}"},
      {"{{total.currency}}", "1: neither the data nor mailroom has {{total.currency}}"},
      {"{{object.a.b}}", "1: neither the data nor mailroom has {{object.a.b}}"},
      {"{{link}}", "1: neither the data nor mailroom has {{link}}"},
      {"{{code}}", "1: neither the data nor mailroom has {{code}}"},
      {"{{login}}", "1: neither the data nor mailroom has {{login}}"},
      {"{{list}}", "1: {{list}} is a list, which has no text of its own"},
      {"{{object.a}}", "1: {{object.a}} is an object, which has no text of its own"},
      {"{{.}}", "1: {{.}} is an object, which has no text of its own"},
      {"{{\xE2\x80\xAEx}}", "1: neither the data nor mailroom has {{?x}}"},
  };
  for (const auto& [text, reason] : cases) {
    INFO(text);
    const auto refusal = shown(text, data);
    CHECK(refusal.substr(0, refusal.find(';')) ==
          "refused: receipt.txt:" + reason.substr(0, reason.find(';')));
  }
  CHECK(shown("{{totel}}", data) ==
        "refused: receipt.txt:1: neither the data nor mailroom has {{totel}}; did you mean {{total}}?");
  CHECK(shown("x {{> p}}", data, {{"p.mustache", "\n\n{{gone}}"}}) ==
        "refused: p.mustache:3: neither the data nor mailroom has {{gone}}");
  CHECK(shown("{{gone}}", data, {}, templates::MailPart::subject) ==
        "refused: receipt.subject:1: neither the data nor mailroom has {{gone}}");
}

TEST_CASE("a template that multiplies is stopped") {
  std::string list = "{\"a\": [1";
  for (int i = 1; i < 1000; ++i)
    list += ",1";
  list += "]}";
  CHECK(shown("{{#a}}{{#a}}{{#a}}{{/a}}{{/a}}{{/a}}", list) ==
        "refused: receipt.txt:1: it takes more than 1,000,000 steps");
  CHECK(shown("\n{{#a}}{{#a}}xxxxxxxxxxxxxxxxxx{{/a}}{{/a}}", list, {}, templates::MailPart::text, 100'000) ==
        "refused: receipt.txt:2: the text becomes larger than 100,000 bytes");
  CHECK(shown("{{b}}", R"({"b": "&&&&&&&&&&&&&&&&&&&&&&&&"})", {}, templates::MailPart::html, 100) ==
        "refused: receipt.html:1: the text becomes larger than 100 bytes");
  CHECK(shown("0123456789", "", {}, templates::MailPart::text, 10) == "0123456789");
}

TEST_CASE("a value with a line end cannot end a subject, and is shown elsewhere") {
  const std::string data = R"({"a": "x\r\nBcc: y@z.example"})";
  CHECK(shown("{{a}}", data) == "x\r\nBcc: y@z.example");
  // The message refuses what the template makes of it.
  CHECK(shown("{{a}}", data, {}, templates::MailPart::subject) == "x\r\nBcc: y@z.example");
}

}  // namespace mailroom::test::mail_mustache_test
