#include <algorithm>
#include <fmt/format.h>
#include <random>

#include "base/printable.hpp"
#include "mail/address.hpp"
#include "support/catch.hpp"
#include "support/misleading_text.hpp"

namespace mailroom::test::mail_address_test {
namespace {

/// The normalized address, or `refused: ` and the reason.
std::string result_of(const std::string& text) {
  const auto parsed = mail::parse_address(text);
  if (const auto* refusal = std::get_if<mail::Refusal>(&parsed)) return "refused: " + refusal->reason;
  return std::get<mail::Address>(parsed).text();
}

std::string mailbox_of(const std::string& text) {
  const auto parsed = mail::parse_mailbox(text);
  if (const auto* refusal = std::get_if<mail::Refusal>(&parsed)) return "refused: " + refusal->reason;
  const auto& mailbox = std::get<mail::Mailbox>(parsed);
  return "[" + mailbox.name + "] " + mailbox.address.text();
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += text;
  return all;
}

}  // namespace

TEST_CASE("an address that can be mailed stays as it is") {
  for (const std::string address : {"a@b.example", "A.b+tag@Mail.Example", "!#$%&'*+-/=?^_`{|}~@x.example",
                                    "1@2.example", "user@xn--bcher-kva.example", "a@a-b.c--d.example",
                                    "a@1a.2b", "grüße@mail.example", "用户@mail.example", "a-@b.example"}) {
    CHECK(result_of(address) == address);
  }
  const auto local = std::string(64, 'x');
  CHECK(result_of(local + "@b.example") == local + "@b.example");
  // 254 octets.
  const auto longest = "ab@" + repeated(std::string(49, 'x') + ".", 5) + "y";
  CHECK(longest.size() == 254);
  CHECK(result_of(longest) == longest);
}

TEST_CASE("a local part that needs quotes gets them, and a quoted one stays as it is") {
  CHECK(result_of("a..b@docomo.example") == "\"a..b\"@docomo.example");
  CHECK(result_of("a.@docomo.example") == "\"a.\"@docomo.example");
  CHECK(result_of(".a@docomo.example") == "\".a\"@docomo.example");
  for (const std::string address :
       {"\"a b\"@b.example", "\"a@b\"@c.example", "\"a\\\"b\\\\\"@c.example", "\"ü..\"@b.example"})
    CHECK(result_of(address) == address);
}

TEST_CASE("an address that cannot be mailed is refused with the reason") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "the address has no @"},
      {"a", "the address has no @"},
      {"@b.example", "there is nothing before the @"},
      {"a@", "there is nothing after the @"},
      {std::string(65, 'x') + "@b.example", "the local part has 65 octets, at most 64 are allowed"},
      {"ab@" + repeated(std::string(49, 'x') + ".", 5) + "yz",
       "the address has 255 octets, at most 254 are allowed"},
      {"\"a b@b.example", "the local part has a quote that does not end"},
      {"\"a\\\"@b.example", "the local part has a quote that does not end"},
      {"\"@b.example", "the local part has a quote that does not end"},
      {"\"\"@b.example", "the local part has a quote that does not end"},
      {"\"a\"b\"@b.example", "the local part has a quote in its middle"},
      {"\"a>b\"@b.example", "the local part has '>', which is not allowed"},
      {"\"-f\"@b.example", "the local part begins with a hyphen"},
      {"\"a\u202eb\"@b.example", "the local part has an invisible character"},
      {"." + std::string(62, 'x') + ".@b.example", "the local part has 66 octets, at most 64 are allowed"},
      {"a b@b.example", "the local part has a blank, which is not allowed"},
      {" a@b.example", "the local part has a blank, which is not allowed"},
      {"a@b@c.example", "the local part has '@', which is not allowed"},
      {"a,b@c.example", "the local part has ',', which is not allowed"},
      {"<a@c.example", "the local part has '<', which is not allowed"},
      {"a>@c.example", "the local part has '>', which is not allowed"},
      {"a\"b@c.example", "the local part has '\"', which is not allowed"},
      {"a(b)@c.example", "the local part has '(', which is not allowed"},
      {"a\\b@c.example", "the local part has '\\', which is not allowed"},
      {"-f@b.example", "the local part begins with a hyphen"},
      {"-@b.example", "the local part begins with a hyphen"},
      {"a\u200b@b.example", "the local part has an invisible character"},
      {"a\u202eb@b.example", "the local part has an invisible character"},
      {"a\u00a0@b.example", "the local part has a blank, which is not allowed"},
      {"a@b", "the domain has no dot"},
      {"a@localhost", "the domain has no dot"},
      {"a@b.", "the domain has an empty label"},
      {"a@.b", "the domain has an empty label"},
      {"a@b..c", "the domain has an empty label"},
      {"a@-b.example", "a label of the domain begins or ends with a hyphen"},
      {"a@b-.example", "a label of the domain begins or ends with a hyphen"},
      {"a@b_c.example", "the domain has '_', which is not allowed"},
      {"a@b.example ", "the domain has a blank, which is not allowed"},
      {"a@b.example>", "the domain has '>', which is not allowed"},
      {"a@" + std::string(64, 'x') + ".example",
       "a label of the domain has 64 octets, at most 63 are allowed"},
      {"a@[127.0.0.1]", "the domain is an address literal, and only a host name is allowed"},
      {"a@127.0.0.1", "the domain ends in a number, and only a host name is allowed"},
      {"a@b.example\r\nRCPT TO:<c@d.example>", "the address has a control character"},
      {"a\r@b.example", "the address has a control character"},
      {"a\n@b.example", "the address has a control character"},
      {"a@b.example\n", "the address has a control character"},
      {"\ra@b.example", "the address has a control character"},
      {std::string("a\0@b.example", 12), "the address has a control character"},
      {"a\x7f@b.example", "the address has a control character"},
      {"a\xff@b.example", "the address is not valid UTF-8"},
      {"a\xc0\x80@b.example", "the address is not valid UTF-8"},
      {std::string(2000, 'x') + "@b.example", "the address has 2010 octets, at most 254 are allowed"},
  };
  for (const auto& [address, reason] : cases) {
    INFO(address);
    CHECK(result_of(address) == "refused: " + reason);
  }
}

TEST_CASE(
    "an international domain becomes its A-labels, and a character that becomes ASCII brings nothing in") {
  CHECK(result_of("a@bücher.example") == "a@xn--bcher-kva.example");
  CHECK(result_of("a@BÜCHER.example") == "a@xn--bcher-kva.example");
  CHECK(result_of("a@例え.テスト") == "a@xn--r8jz45g.xn--zckzah");
  // Nontransitional: ß is a letter of its own.
  CHECK(result_of("a@straße.example") == "a@xn--strae-oqa.example");
  // U+3002 is a dot, U+FF21 a capital A.
  CHECK(result_of("a@b\u3002example") == "a@b.example");
  CHECK(result_of("a@\uff21.example") == "a@a.example");
  // U+FF20 becomes @, U+FF1E becomes >, U+2100 becomes a/c.
  for (const std::string domain : {"b\uff20c.example", "b\uff1e.example", "\u2100.example", "\u202e.example",
                                   "b\u00a0c.example", "\u0300a.example", "ü..example", "-ü.example"}) {
    INFO(domain);
    CHECK(result_of("a@" + domain).rfind("refused: ", 0) == 0);
  }
  CHECK(result_of("a@" + repeated("ü", 60) + ".example").rfind("refused: ", 0) == 0);
}

TEST_CASE("only an address with a non-ASCII local part needs SMTPUTF8") {
  const auto needs = [](const std::string& text) {
    return mail::needs_smtputf8(std::get<mail::Address>(mail::parse_address(text)));
  };
  CHECK(needs("grüße@mail.example"));
  CHECK_FALSE(needs("gruesse@mail.example"));
  CHECK_FALSE(needs("a@bücher.example"));
}

TEST_CASE("a mailbox is an address, with or without a name") {
  CHECK(mailbox_of("a@b.example") == "[] a@b.example");
  CHECK(mailbox_of("  a@b.example ") == "[] a@b.example");
  CHECK(mailbox_of("<a@b.example>") == "[] a@b.example");
  CHECK(mailbox_of("A Name <a@b.example>") == "[A Name] a@b.example");
  CHECK(mailbox_of("Name<a@b.example>") == "[Name] a@b.example");
  CHECK(mailbox_of("Grüße, Inc. <a@bücher.example>") == "[Grüße, Inc.] a@xn--bcher-kva.example");
  CHECK(mailbox_of(R"("A \"B\" \\ C" <a@b.example>)") == R"([A "B" \ C] a@b.example)");
  CHECK(mailbox_of(R"("" <a@b.example>)") == "[] a@b.example");
  CHECK(mailbox_of("") == "refused: the address has no @");
  CHECK(mailbox_of("Name") == "refused: the address has no @");
  CHECK(mailbox_of("Name <>") == "refused: the address has no @");
  CHECK(mailbox_of("Name <a@b.example") == "refused: the local part has a blank, which is not allowed");
  CHECK(mailbox_of("a@c@b.example") == "refused: the local part has '@', which is not allowed");
  CHECK(mailbox_of("\"a@c, d\"@b.example") == "[] \"a@c, d\"@b.example");
  for (const std::string several :
       {"a@b.example, c@d.example", "A <a@b.example>, B <c@d.example>", "a@b.example, B <c@d.example>",
        "\"A\" <a@b.example>, \"B\" <c@d.example>", "A <a@b.example>; B <c@d.example>",
        "\"A\", \"B\" <c@d.example>"})
    CHECK(mailbox_of(several) == "refused: it names more than one mailbox");
  CHECK(mailbox_of("\"A <a@b.example>, B\" <c@d.example>") == "[A <a@b.example>, B] c@d.example");
  CHECK(mailbox_of("a\r\nBcc: x@y.example <a@b.example>") ==
        "refused: the name has a control character or invalid UTF-8");
  CHECK(mailbox_of("\xff <a@b.example>") == "refused: the name has a control character or invalid UTF-8");
}

TEST_CASE("a list of mailboxes has commas between them, and those within names") {
  const auto list_of = [](const std::string& text) {
    const auto parsed = mail::parse_mailboxes(text);
    if (const auto* refusal = std::get_if<mail::Refusal>(&parsed)) return "refused: " + refusal->reason;
    std::string all;
    for (const auto& mailbox : std::get<std::vector<mail::Mailbox>>(parsed))
      all += fmt::format("[{}] {};", mailbox.name, mailbox.address.text());
    return all;
  };
  CHECK(list_of("a@b.example") == "[] a@b.example;");
  CHECK(list_of("a@b.example, C <c@d.example>,e@f.example") ==
        "[] a@b.example;[C] c@d.example;[] e@f.example;");
  CHECK(list_of("Doe, Jane <a@b.example>, \"D, E\" <c@d.example>") ==
        "[Doe, Jane] a@b.example;[D, E] c@d.example;");
  CHECK(list_of(R"("x@y, \", z" <a@b.example>, c@d.example)") ==
        R"([x@y, ", z] a@b.example;[] c@d.example;)");
  for (const std::string wrong :
       {"", "a@b.example,", "a@b.example, ", ",a@b.example", "a@b.example,,c@d.example",
        "a@b.example c@d.example", "a@b.example; c@d.example", "a@b.example, \"c"}) {
    INFO(wrong);
    CHECK(list_of(wrong).starts_with("refused: "));
  }
}

TEST_CASE("whatever is accepted is safe in a command and in a header") {
  std::mt19937 random(20261122);
  const auto below = [&](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  };
  const std::vector<std::string> plain{"a", "B", "7", ".", "-", "_", "+", "\u00fc", "xn--", "\u65e5"};
  const std::vector<std::string> hostile{"@",       "<",
                                         ">",       "\"",
                                         "\r\n",    "\n",
                                         "\u200b",  "\U0001f600",
                                         " ",       "..",
                                         "[",       "]",
                                         ",",       ":",
                                         ";",       "\uff20",
                                         "\uff1e",  "\u3002",
                                         "\xff",    "(",
                                         ")",       "\\",
                                         "-",       "\t",
                                         "\u2100.", std::string(1, '\0')};
  std::size_t accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (auto count = below(4) + 1; count > 0; --count)
      text += plain[below(plain.size())];
    text += "@b";
    for (auto count = below(4); count > 0; --count)
      text += plain[below(plain.size())];
    text += ".example";
    for (auto count = below(3); count > 0; --count)
      text.insert(below(text.size() + 1), hostile[below(hostile.size())]);
    const auto parsed = mail::parse_address(text);
    if (!std::holds_alternative<mail::Address>(parsed)) continue;
    ++accepted;
    const auto& address = std::get<mail::Address>(parsed);
    const auto whole = address.text();
    INFO(text);
    const bool is_quoted = address.local.front() == '"';
    const auto bare = is_quoted ? "q@" + address.domain : whole;
    REQUIRE(bare.find_first_of("<>\" \r\n\t[](),;:\\") == std::string::npos);
    REQUIRE(std::count(bare.begin(), bare.end(), '@') == 1);
    REQUIRE(whole.find_first_of("<>\r\n\t") == std::string::npos);
    if (is_quoted) REQUIRE(address.local[1] != '-');
    REQUIRE(printable(whole) == whole);
    REQUIRE(std::all_of(address.domain.begin(), address.domain.end(),
                        [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
    REQUIRE(address.local.front() != '-');
    // Parsing it again changes nothing.
    REQUIRE(result_of(whole) == whole);
  }
  CHECK(accepted > 5000);
}

}  // namespace mailroom::test::mail_address_test
