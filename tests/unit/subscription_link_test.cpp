// The links of mails by which their readers unsubscribe.

#include "mail/subscription_link.hpp"

#include <set>

#include "process/http_form.hpp"
#include "support/catch.hpp"
#include "webhook/subscription_page.hpp"

namespace mailroom::test::subscription_link_test {
namespace {

const auto key = crypto::Key::from_hex(std::string(64, 'a'), "a test");
const auto old_key = crypto::Key::from_hex(std::string(64, 'b'), "a test");

std::string problem(const std::string& pattern) {
  const auto refusal = mail::SubscriptionLinks::problem_of(pattern);
  return refusal ? refusal->reason : "";
}

}  // namespace

TEST_CASE("a link tells whose mail it is of to the keys and the database that made it, and to nobody else") {
  std::set<std::string> texts;
  for (const auto use : {mail::SubscriptionUse::unsubscribe, mail::SubscriptionUse::preferences}) {
    for (const std::int64_t token : {1LL, 2LL, 256LL, 9'223'372'036'854'775'807LL}) {
      const mail::SubscriptionLink link{.use = use, .token = token};
      const auto text = mail::subscription_text(link, "home", key);
      CHECK(text == mail::subscription_text(link, "home", key));
      CHECK(mail::is_subscription_text(text));
      CHECK(mail::read_subscription_text(text, "home", {key, {}}) == link);
      CHECK(mail::read_subscription_text(text, "home", {old_key, {key}}) == link);
      CHECK_FALSE(mail::read_subscription_text(text, "home", {old_key, {}}));
      CHECK_FALSE(mail::read_subscription_text(text, "copy", {key, {}}));
      texts.insert(text);
    }
  }
  CHECK(texts.size() == 8);
}

TEST_CASE("no text but its own opens a link, whatever is changed in it") {
  const auto text = mail::subscription_text({.token = 42}, "home", key);
  for (std::size_t i = 1; i < text.size(); ++i) {
    for (const char c : std::string("AZaz09-_.= %")) {
      auto forged = text;
      if (forged[i] == c) continue;
      forged[i] = c;
      CHECK_FALSE(mail::read_subscription_text(forged, "home", {key, {}}));
    }
    CHECK_FALSE(mail::read_subscription_text(text.substr(0, i), "home", {key, {}}));
  }
  CHECK_FALSE(mail::read_subscription_text(text + "A", "home", {key, {}}));
}

TEST_CASE("a pattern of links is https and ends with the token") {
  for (const auto* const fine : {"https://app.example/u/{token}", "https://app.example/{token}",
                                 "http://127.0.0.1:8088/u/{token}", "http://localhost/{token}"})
    CHECK(problem(fine).empty());
  for (const auto* const wrong :
       {"http://app.example/u/{token}", "https://app.example/u?t={token}", "https://app.example/{token}/u",
        "x", "https://app.example/u/", "https://app.example/u{token}", "https://app.example/{action}/{token}",
        "http://localhost.evil.example/{token}", "https://app.example/#/{token}"}) {
    CAPTURE(wrong);
    CHECK_FALSE(problem(wrong).empty());
  }
}

TEST_CASE("the headers have the ways that are configured, each its own id") {
  const mail::SubscriptionLinks both("https://app.example/u/{token}", "off+{id}@app.example", key);
  const auto headers = both.headers(7, "home");
  REQUIRE(headers.size() == 2);
  CHECK(headers[0].value == "<https://app.example/u/" + mail::subscription_text({.token = 7}, "home", key) +
                                ">, <mailto:off+" + mail::BounceAddress("", key).id_of(7, "home") +
                                "@app.example?subject=unsubscribe>");
  CHECK(headers[1] == mail::ExtraHeader{"List-Unsubscribe-Post", "List-Unsubscribe=One-Click"});
  const mail::SubscriptionLinks by_mail("", "off+{id}@app.example", key);
  CHECK(by_mail.headers(7, "home").size() == 1);
  CHECK_FALSE(mail::SubscriptionLinks("", "", key).has_way());
}

TEST_CASE("a page is in the language of the mail, or of the browser, as far as there are words or titles") {
  const auto page = [](const std::string& locale, const std::vector<std::string>& languages) {
    const std::vector<suppression::TopicChoice> choices{
        {.topic = "news",
         .title = "N<>&\"'ews",
         .titles = R"({"de": "Neues", "tr": "Haberler", "pt-BR": "Boletim"})",
         .is_own = true,
         .locale = locale}};
    return webhook::subscription_page(webhook::SubscriptionView::question, choices, "pX", languages);
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(page("", {}), "<html lang=\"en\">"));
  CHECK(has(page("", {}), "<bdi>N&lt;&gt;&amp;&quot;"));
  CHECK(has(page("de-AT", {"fr"}), "<bdi>Neues</bdi>"));
  CHECK(has(page("xx", {"fr"}), "<html lang=\"fr\">"));
  CHECK(has(page("", {"tr"}), "<html lang=\"en\">"));
  CHECK(has(page("", {"tr"}), "<bdi lang=\"tr\">Haberler</bdi>"));
  CHECK(has(page("", {"pt-BR"}), "<html lang=\"pt\">"));
  CHECK(has(page("", {"pt-BR"}), "<bdi>Boletim</bdi>"));
  CHECK(webhook::wanted_languages("fr;q=0.5, de-AT , *;q=0.1, en;q=0.9, <x>, it;q=0") ==
        std::vector<std::string>{"de-AT", "en", "fr"});
}

TEST_CASE("a form is read as browsers write it") {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  CHECK(process::form_fields("on=a%2Db&on=c+d&x&=&y=%zz%4") ==
        Fields{{"on", "a-b"}, {"on", "c d"}, {"x", ""}, {"", ""}, {"y", "%zz%4"}});
  CHECK(process::form_fields("").empty());
}

}  // namespace mailroom::test::subscription_link_test
