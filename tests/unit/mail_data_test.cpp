// The data of a message: JSON that keeps its numbers, within limits, beside what mailroom knows itself.

#include "base/error.hpp"
#include "support/catch.hpp"
#include "templates/template_data.hpp"
#include "templates/template_set.hpp"
#include "templates/template_values.hpp"

namespace mailroom::test::mail_data_test {
namespace {

using Kind = templates::TemplateData::Kind;

std::string refusal_of(const std::string& json) {
  const auto parsed = templates::parse_template_data(json);
  const auto* refusal = std::get_if<mail::Refusal>(&parsed);
  return refusal == nullptr ? "none" : refusal->reason;
}

templates::TemplateData member(const std::string& json, const std::string& name) {
  return std::get<templates::TemplateData>(templates::parse_template_data(json)).members.at(name);
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  while (times-- > 0)
    all += text;
  return all;
}

templates::TemplateValues linked() {
  return {.action = "magic_link", .email = "a@b.example", .link = "https://app.example/T", .token = "T"};
}

std::string scope_refusal(const templates::TemplateValues& values, const std::string& data) {
  const auto scope = templates::template_scope(values, data);
  const auto* refusal = std::get_if<mail::Refusal>(&scope);
  return refusal == nullptr ? "none" : refusal->reason;
}

}  // namespace

TEST_CASE("numbers stay as they are written") {
  for (const std::string number :
       {"12.50", "0.10", "-7", "12345678901234567890", "123456789012345678901234567890", "1.10e3", "0",
        "3.000000000000000000001"}) {
    INFO(number);
    const auto value = member("{\"n\": " + number + "}", "n");
    CHECK(value.kind == Kind::number);
    CHECK(value.text == number);
  }
  CHECK(member(R"({"n": true})", "n").text == "true");
  CHECK(member(R"({"n": null})", "n").text.empty());
}

TEST_CASE("a section is shown unless its value is null, false, 0, an empty text or an empty list") {
  for (const auto& [json, is_true] : std::vector<std::pair<std::string, bool>>{{"null", false},
                                                                               {"false", false},
                                                                               {"true", true},
                                                                               {"0", false},
                                                                               {"0.00", false},
                                                                               {"-0.0", false},
                                                                               {"0e7", false},
                                                                               {"0.01", true},
                                                                               {"10", true},
                                                                               {"\"\"", false},
                                                                               {"\"0\"", true},
                                                                               {"\" \"", true},
                                                                               {"[]", false},
                                                                               {"[null]", true},
                                                                               {"{}", true}}) {
    INFO(json);
    CHECK(member("{\"n\": " + json + "}", "n").is_true() == is_true);
  }
}

TEST_CASE("data that is no object of JSON, or too large, is refused") {
  CHECK(refusal_of("") == "none");
  CHECK(refusal_of("{}") == "none");
  CHECK(refusal_of(R"({"a": 1, "a": 2})") == "none");
  for (const std::string json : {"[]", "1", "\"a\"", "null", "true", "1.5"})
    CHECK(refusal_of(json) == "the data is not a JSON object");
  CHECK(refusal_of("{\"a\": 1") == "the data is not valid JSON at byte 8");
  CHECK(refusal_of("{}{}") == "the data is not valid JSON at byte 3");
  CHECK(refusal_of("{'a': 1}") == "the data is not valid JSON at byte 2");
  CHECK(refusal_of(R"({"a": NaN})") == "the data is not valid JSON at byte 7");
  CHECK(refusal_of("{\"a\": \"\xff\"}") == "the data is not valid JSON at byte 8");
  CHECK(refusal_of("{\"a\": \"\n\"}") == "the data is not valid JSON at byte 8");
  CHECK(refusal_of(R"({"a": "\ud800"})").ends_with(": half a surrogate pair"));
  CHECK(refusal_of(R"({"a": "\udc00\ud800"})").ends_with(": half a surrogate pair"));
  CHECK(refusal_of(R"({"\ud800": 1})").ends_with(": half a surrogate pair"));
  CHECK(refusal_of(R"({"a": 1e400})").ends_with(": a number that is too large"));
  CHECK(refusal_of(R"({"a": "x\u0000y"})") == "the data has a NUL in a text");
  CHECK(refusal_of(R"({"a\u0000": 1})") == "the data has a NUL in a name");
  CHECK(refusal_of("{\"a\": \"" + std::string(10'000'000, 'x') + "\"}") ==
        "the data has 10,000,009 bytes, at most 1,048,576 are allowed");
  CHECK(refusal_of("{\"a\": [" + repeated("1,", 99'998) + "1]}") == "the data has more than 100,000 values");
  CHECK(refusal_of("{\"a\": [" + repeated("1,", 99'997) + "1]}") == "none");
  CHECK(refusal_of("{\"a\": " + repeated("[", 63) + repeated("]", 63) + "}") == "none");
  CHECK(refusal_of("{\"a\": " + repeated("[", 64) + repeated("]", 64) + "}") ==
        "the data is nested more than 64 deep");
  CHECK(refusal_of("{\"a\": " + repeated("[", 500'000)) == "the data is nested more than 64 deep");
}

TEST_CASE("a mail has the variables that its action gives it") {
  const auto names = [](const templates::TemplateValues& values) {
    std::string all;
    for (const auto& [name, text] : templates::variables_of(values))
      all += name + " ";
    return all;
  };
  CHECK(names({.action = "message"}) == "action email ");
  CHECK(names({.action = "message", .login = "a"}) == "action email login ");
  CHECK(names({.action = "otp", .code = "12345"}) == "action code email expires_at expires_in ");
  CHECK(names(linked()) == "action code email expires_at expires_in link token ");
}

TEST_CASE("a translation has the numbers of a time and of a duration") {
  auto values = linked();
  const auto rendered = [&](const std::string& text) {
    templates::TemplateFiles files;
    files.texts = {{"activation.subject", "s"}, {"activation.txt", text}};
    const auto mail = templates::TemplateSet(files).render(
        {.name = "activation"}, std::get<templates::TemplateData>(templates::template_scope(values, "")),
        1000);
    if (const auto* refusal = std::get_if<mail::Refusal>(&mail)) return refusal->reason;
    return *std::get<templates::RenderedMail>(mail).text;
  };
  const std::string in =
      "{{#expires_in.minutes}}{{expires_in.minutes}} Minuten{{/expires_in.minutes}}"
      "{{#expires_in.hours}}{{expires_in.hours}} Stunden{{/expires_in.hours}}"
      "{{#expires_in.days}}{{expires_in.days}} Tagen{{/expires_in.days}}";
  values.valid_from = Moment(std::chrono::seconds(1'795'254'315));
  for (const auto& [seconds, words] : std::vector<std::pair<int, std::string>>{
           {900, "15 Minuten"}, {5400, "2 Stunden"}, {259'200, "3 Tagen"}}) {
    values.expires_at = values.valid_from + std::chrono::seconds(seconds);
    CHECK(rendered(in) == words);
  }
  values.expires_at = values.valid_from;
  CHECK(rendered("{{expires_at.day}}.{{expires_at.month}}.{{expires_at.year}}, {{expires_at.hour}}:"
                 "{{expires_at.minute}} UTC; {{expires_at}}") ==
        "21.11.2026, 09:45 UTC; 2026-11-21 09:45 UTC");
  CHECK_THROWS_AS(rendered("{{expires_in.weeks}}"), Error);
  CHECK_THROWS_AS(rendered("{{email.days}}"), Error);
}

TEST_CASE("data cannot replace what mailroom sets itself, and may repeat it") {
  CHECK(scope_refusal(linked(), R"({"link": "https://evil.example/"})") ==
        "the data has link, which mailroom sets itself in this mail: give it another name");
  CHECK(scope_refusal(linked(), R"({"token": null})").starts_with("the data has token,"));
  CHECK(scope_refusal(linked(), R"({"code": ["x"]})").starts_with("the data has code,"));
  CHECK(scope_refusal(linked(), R"({"email": "a@b.example", "login": "Ada"})") == "none");
  // A receipt has no link, so its data may have a code, such as that of a voucher.
  CHECK(scope_refusal({.action = "message", .email = "a@b.example"}, R"({"code": "SPRING", "link": "x"})") ==
        "none");
  CHECK(scope_refusal({.action = "message", .email = "a@b.example"}, R"({"email": "b@b.example"})")
            .starts_with("the data has email,"));
  const auto preview = std::get<templates::TemplateData>(templates::template_scope(
      linked(), R"({"link": "https://other.example/"})", templates::DataFor::preview));
  CHECK(preview.members.at("link").text == "https://other.example/");
  CHECK(preview.members.at("token").text == "T");
}

}  // namespace mailroom::test::mail_data_test
