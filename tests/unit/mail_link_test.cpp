#include "mail/configured_mail.hpp"
#include "mail/link_template.hpp"
#include "support/catch.hpp"

namespace mailroom::test::mail_link_test {
namespace {

std::string link_of(const std::string& text) {
  const auto parsed = mail::LinkTemplate::parse(text);
  if (const auto* refusal = std::get_if<mail::Refusal>(&parsed)) return "refused: it " + refusal->reason;
  return std::get<mail::LinkTemplate>(parsed).link("recovery", "T-_.~/?&=%{}\n\xc3\xbc");
}

std::string headers_of(const std::vector<std::string>& items) {
  const auto parsed = mail::parse_extra_headers(items);
  if (const auto* refusal = std::get_if<mail::Refusal>(&parsed)) return "refused: " + refusal->reason;
  std::string text;
  for (const auto& [name, value] : std::get<std::vector<mail::ExtraHeader>>(parsed))
    text += name + "=" + value + "|";
  return text;
}

}  // namespace

TEST_CASE("a link has its values percent-encoded") {
  const std::string token = "T-_.~%2F%3F%26%3D%25%7B%7D%0A%C3%BC";
  CHECK(link_of("https://app.example/{action}?token={token}") ==
        "https://app.example/recovery?token=" + token);
  CHECK(link_of("http://app.example:8080/#{token}") == "http://app.example:8080/#" + token);
  CHECK(link_of("HTTPS://APP.example/{token}/{token}") == "HTTPS://APP.example/" + token + "/" + token);
  CHECK(link_of("https://[::1]/a%20b?c=[1]&t={token}!") == "https://[::1]/a%20b?c=[1]&t=" + token + "!");
}

TEST_CASE("a link that would not work is refused with the reason") {
  const std::string foreign =
      "has a character that a URL must not have; percent-encode it, and write an international host in ASCII";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "does not begin with https:// or http://"},
      {"app.example/{token}", "does not begin with https:// or http://"},
      {"ftp://app.example/{token}", "does not begin with https:// or http://"},
      {"javascript:alert('{token}')", "does not begin with https:// or http://"},
      {"https:/app.example/{token}", "does not begin with https:// or http://"},
      {"https:///{token}", "names no host"},
      {"https://?t={token}", "names no host"},
      {"https://{token}.app.example/", "has a placeholder in its host"},
      {"https://app.example/", "has no {token}, without which every mail has the same link"},
      {"https://app.example/{action}", "has no {token}, without which every mail has the same link"},
      {"https://app.example/{tokne}", "has an unknown placeholder {tokne}; did you mean {token}?"},
      {"https://app.example/{login}{token}",
       "has an unknown placeholder {login}; known are {action} and {token}"},
      {"https://app.example/{}{token}", "has an unknown placeholder {}; known are {action} and {token}"},
      {"https://app.example/{token", "has an unmatched {"},
      {"https://app.example/{token}}", "has an unmatched }"},
      {"https://app.example/{{token}}", "has an unknown placeholder {{token}; did you mean {token}?"},
      {"https://app.example/ {token}", foreign},
      {"https://app.example/\"{token}", foreign},
      {"https://app.example/<{token}>", foreign},
      {"https://app.example/\r\n{token}", foreign},
      {"https://b\u00fccher.example/{token}", foreign},
      {"https://app.example/" + std::string(1000, 'x') + "{token}",
       "has 1027 characters, at most 1000 are allowed"},
  };
  for (const auto& [text, reason] : cases) {
    INFO(text);
    CHECK(link_of(text) == "refused: it " + reason);
  }
}

TEST_CASE("headers of the operator are read, and refused with the number of the item") {
  CHECK(headers_of({}).empty());
  CHECK(headers_of({"X-SES-CONFIGURATION-SET: mailroom", "X-A:b", " X-C :  d: e  f "}) ==
        "X-SES-CONFIGURATION-SET=mailroom|X-A=b|X-C=d: e  f|");
  CHECK(headers_of({"X-A: gr\u00fc\u00dfe"}) == "X-A=gr\u00fc\u00dfe|");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "has no colon after a name"},
      {"X-B", "has no colon after a name"},
      {": b", "has a name that is not 1 to 64 letters, digits and hyphens"},
      {"X B: c", "has a name that is not 1 to 64 letters, digits and hyphens"},
      {"X-B\r\nBcc: a@b.example", "has a name that is not 1 to 64 letters, digits and hyphens"},
      {std::string(65, 'X') + ": b", "has a name that is not 1 to 64 letters, digits and hyphens"},
      {"Bcc: a@b.example", "is Bcc, which cannot be added"},
      {"SUBJECT: b", "is SUBJECT, which cannot be added"},
      {"Content-Type: text/plain", "is Content-Type, which cannot be added"},
      {"Resent-To: a@b.example", "is Resent-To, which cannot be added"},
      {"X-B:", "has no value for X-B"},
      {"X-B: a\r\nBcc: a@b.example", "has a value for X-B that is not printable"},
      {"X-B: a\tb", "has a value for X-B that is not printable"},
      {"X-B: \xff", "has a value for X-B that is not printable"},
      {"List-Help: <mailto:gr\u00fc\u00dfe@b.example>",
       "has a value for List-Help that is not printable ASCII"},
      {"Errors-To: gr\u00fc\u00dfe@b.example", "has a value for Errors-To that is not printable ASCII"},
      {"X-B: " + std::string(901, 'x'),
       "has more than 900 characters in a row for X-B that cannot be folded"},
      {"X-B: a" + std::string(900, ' ') + "b",
       "has more than 900 characters in a row for X-B that cannot be folded"},
      {"x-a: again", "is x-a, which is given twice"},
  };
  for (const auto& [item, problem] : cases) {
    INFO(item);
    CHECK(headers_of({"X-A: b", item}) == "refused: item 2 " + problem);
  }
}

}  // namespace mailroom::test::mail_link_test
