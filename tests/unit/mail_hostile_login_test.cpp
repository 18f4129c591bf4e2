// A login is free text of whoever signs up. It reaches a mail as text, and as nothing else.

#include <algorithm>

#include "mail/message.hpp"
#include "support/catch.hpp"
#include "support/parsed_message.hpp"
#include "templates/template_set.hpp"
#include "templates/template_values.hpp"

namespace mailroom::test::mail_hostile_login_test {
namespace {

/// A set that shows the login in every part; the built-in one has it in no subject.
templates::TemplateSet login_set() {
  return templates::TemplateSet(
      templates::TemplateFiles{.directory = "t",
                               .texts = {{"activation.subject", "Hello {{login}}"},
                                         {"activation.txt", "Hello {{login}}\n{{link}}"},
                                         {"activation.html", "<p>{{login}}</p>"}},
                               .ignored = {}});
}

templates::TemplateValues values_of(const std::string& login) {
  return {.action = "activation",
          .email = "user1@mail.example",
          .login = login,
          .link = "https://app.example/activation?token=T",
          .token = "T"};
}

std::variant<std::string, mail::Refusal> built(const templates::TemplateSet& templates,
                                               const std::string& login) {
  const auto scope = std::get<templates::TemplateData>(templates::template_scope(values_of(login), ""));
  constexpr std::size_t large = 1024 * 1024;
  const auto mail = std::get<templates::RenderedMail>(templates.render({.name = "activation"}, scope, large));
  const mail::Address to{"user1", "mail.example"};
  const mail::MessageBuilder builder({"Example", {"no-reply", "app.example"}}, {}, {});
  return builder.build({.queue = "mailroom",
                        .token = 1,
                        .to = {{"", to}},
                        .subject = mail.subject,
                        .text = mail.text,
                        .html = mail.html});
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += text;
  return all;
}

std::size_t longest_header_line(const std::string& message) {
  std::size_t longest = 0;
  for (std::size_t start = 0, end = 0; (end = message.find("\r\n", start)) != start; start = end + 2)
    longest = std::max(longest, end - start);
  return longest;
}

}  // namespace

TEST_CASE("a hostile login is shown as it is, and changes neither headers nor HTML") {
  // The login, and its HTML.
  const std::vector<std::pair<std::string, std::string>> cases{
      {"<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"},
      {"\"><img src=x onerror=\"1\">", "&quot;&gt;&lt;img src=x onerror=&quot;1&quot;&gt;"},
      {"&lt;b&gt;", "&amp;lt;b&amp;gt;"},
      // Right-to-left mark, right-to-left override and its end; Hebrew.
      {"\u200f\u202eresu\u202c", "\u200f\u202eresu\u202c"},
      {"\u05d0\u05d1", "\u05d0\u05d1"},
      {"=?utf-8?Q?=0D=0ABcc:_x@y.example?=", "=?utf-8?Q?=0D=0ABcc:_x@y.example?="},
      {"{{token}}{{> a}}{{{", "{{token}}{{&gt; a}}{{{"},
      {std::string(10'000, 'x'), std::string(10'000, 'x')},
      {repeated("\u00fc", 10'000), repeated("\u00fc", 10'000)},
      {repeated("<", 10'000), repeated("&lt;", 10'000)},
      {repeated("a ", 5'000) + "b", repeated("a ", 5'000) + "b"},
  };
  const auto templates = login_set();
  for (const auto& [login, html] : cases) {
    INFO(login.substr(0, 100));
    const auto message = std::get<std::string>(built(templates, login));
    const auto parsed = parse_message(message);
    CHECK(parsed.names() == std::vector<std::string>{"Date", "From", "To", "Subject", "Message-ID",
                                                     "Auto-Submitted", "X-Auto-Response-Suppress",
                                                     "MIME-Version", "Content-Type"});
    CHECK(decoded_words(parsed.header("Subject")) == "Hello " + login);
    CHECK(parsed.text == "Hello " + login + "\nhttps://app.example/activation?token=T\n");
    CHECK(parsed.html == "<p>" + html + "</p>\n");
    CHECK(longest_header_line(message) <= 76);
  }
}

TEST_CASE("a login with a control character is refused in a subject, and encoded elsewhere") {
  const auto templates = login_set();
  for (const std::string login : {"a\r\nBcc: x@y.example", "a\nb", "a\rb", "a\x1b[2Jb", "a\tb"}) {
    INFO(login);
    const auto message = built(templates, login);
    REQUIRE(std::holds_alternative<mail::Refusal>(message));
    CHECK(std::get<mail::Refusal>(message).reason ==
          "the subject has a line end or another control character");
  }
  const templates::TemplateSet builtin(templates::TemplateFiles{});
  const auto message = std::get<std::string>(built(builtin, "a\x1b[2J\r\n.\r\nRCPT TO:<x@y.example>"));
  const auto parsed = parse_message(message);
  CHECK(parsed.text.rfind("Hello a\x1b[2J\n.\nRCPT TO:<x@y.example>,\n", 0) == 0);
  CHECK(message.find('\x1b') == std::string::npos);
  CHECK(message.find("\r\n.\r\n") == std::string::npos);
}

}  // namespace mailroom::test::mail_hostile_login_test
