// Whatever is not our own text is escaped. The style is in the page, which fetches nothing.

#include "webhook/subscription_page.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "base/json.hpp"
#include "base/text.hpp"
#include "templates/template_files.hpp"
#include "templates/template_program.hpp"
#include "webhook/subscription_words.hpp"

namespace mailroom::webhook {
namespace {

using suppression::TopicChoice;

constexpr std::string_view style =
    ":root{color-scheme:light dark}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:#fff;color:#1b1b1f;font:1.0625rem/1.5 system-ui,sans-serif}"
    "main{max-width:34rem;margin:0 auto;padding:2rem 1.25rem}"
    "h1{font-size:1.5rem;line-height:1.25;margin:0 0 1rem}"
    "fieldset{border:1px solid #6b6b75;border-radius:.5rem;margin:0 0 1.25rem;padding:.5rem 1rem 1rem}"
    "legend{padding:0 .375rem}"
    "label{display:flex;gap:.75rem;align-items:flex-start;padding:.625rem 0;overflow-wrap:anywhere}"
    "input[type=checkbox]{width:1.375rem;height:1.375rem;margin:.0625rem 0 0;flex:none;accent-color:#0b57d0}"
    "button{font:inherit;font-weight:600;min-height:2.75rem;padding:.5rem 1.5rem;border:0;border-radius:.5rem;"
    "background:#0b57d0;color:#fff;cursor:pointer}"
    "a{color:#0b57d0}"
    ":focus-visible{outline:3px solid #0b57d0;outline-offset:3px}"
    "@media(prefers-color-scheme:dark){"
    "body{background:#17171b;color:#ececf1}fieldset{border-color:#9a9aa5}a{color:#a8c7fa}"
    "input[type=checkbox]{accent-color:#a8c7fa}button{background:#a8c7fa;color:#062e6f}"
    ":focus-visible{outline-color:#a8c7fa}}";

/// A title, and the language that it is in, if that is known.
struct Title {
  std::string text{};
  std::string language{};
};

Title title_of(const TopicChoice& choice, const std::string& language) {
  const auto titles = try_parse_json(choice.titles);
  if (titles.is_object() && !language.empty()) {
    for (const auto& locale : templates::locale_chain(language)) {
      for (const auto& [name, title] : titles.items()) {
        if (!locale.empty() && title.is_string() && lower_case(name) == lower_case(locale))
          return {title.get<std::string>(), name};
      }
    }
  }
  return {choice.title, {}};
}

std::string base_of(const std::string& locale) {
  return lower_case(locale.substr(0, locale.find_first_of("-_")));
}

/// The first that a title or the words of the pages have; empty for none.
std::string chosen_language(const std::vector<TopicChoice>& choices, const std::vector<std::string>& wanted) {
  const auto is_spoken = [&](const std::string& language) {
    return find_subscription_words(base_of(language)) != nullptr ||
           std::ranges::any_of(
               choices, [&](const auto& choice) { return !title_of(choice, language).language.empty(); });
  };
  const auto found = std::ranges::find_if(wanted, is_spoken);
  return found == wanted.end() ? std::string() : *found;
}

/// With its language where that is not the page's.
std::string title_html(const Title& title, std::string_view page_language) {
  const bool differs = !title.language.empty() && base_of(title.language) != page_language;
  return fmt::format("<bdi{}>{}</bdi>",
                     differs ? fmt::format(" lang=\"{}\"", templates::escaped_html(title.language)) : "",
                     templates::escaped_html(title.text));
}

std::string with_title(std::string_view words, const std::string& title) {
  const auto at = words.find("{}");
  return std::string(words.substr(0, at)) + title + std::string(words.substr(at + 2));
}

std::string boxes_html(const std::vector<TopicChoice>& choices, const std::string& language,
                       const SubscriptionWords& words) {
  auto form = fmt::format("<form method=\"post\"><fieldset><legend>{}</legend>", words.which);
  for (const auto& choice : choices) {
    const auto name = templates::escaped_html(choice.topic);
    append_format(form,
                  "<label><input type=\"checkbox\" name=\"on\" value=\"{}\"{}><span>{}</span></label>"
                  "<input type=\"hidden\" name=\"shown\" value=\"{}\">",
                  name, choice.is_on ? " checked" : "",
                  title_html(title_of(choice, language), words.language), name);
  }
  return form + fmt::format("</fieldset><button>{}</button></form>", words.save);
}

std::string link_html(std::string_view preferences_text, const SubscriptionWords& words) {
  return fmt::format("<p><a href=\"{}\">{}</a></p>", templates::escaped_html(preferences_text), words.choose);
}

struct Part {
  std::string_view heading;
  std::string body;
};

Part part_of(SubscriptionView view, const std::vector<TopicChoice>& choices,
             std::string_view preferences_text, const std::string& language, const SubscriptionWords& words) {
  const auto own = title_html(title_of(choices.front(), language), words.language);
  switch (view) {
    case SubscriptionView::question:
      return {words.unsubscribe,
              fmt::format("<p>{}</p><form method=\"post\"><input type=\"hidden\" name=\"List-Unsubscribe\" "
                          "value=\"One-Click\"><button>{}</button></form>{}",
                          with_title(words.question, own), words.unsubscribe,
                          link_html(preferences_text, words))};
    case SubscriptionView::stopped:
      return {words.stopped, fmt::format("<p role=\"status\">{}</p>{}", with_title(words.no_more, own),
                                         link_html(preferences_text, words))};
    case SubscriptionView::preferences:
    case SubscriptionView::saved:
      break;
  }
  const bool is_saved = view == SubscriptionView::saved;
  return {words.preferences,
          (is_saved ? fmt::format("<p role=\"status\">{}</p>", words.saved) : std::string()) +
              boxes_html(choices, language, words)};
}

}  // namespace

std::vector<std::string> wanted_languages(std::string_view accept_language) {
  constexpr std::size_t most = 20;
  std::vector<std::pair<double, std::string>> all;
  for (const auto part : split(accept_language.substr(0, 1000), ',')) {
    const auto pieces = split(part, ';');
    const auto name = trimmed(pieces.front());
    double weight = 1;
    if (pieces.size() > 1 && trimmed(pieces[1]).starts_with("q="))
      weight = parse_number<double>(trimmed(pieces[1]).substr(2)).value_or(0);
    const bool is_name = !name.empty() && std::ranges::all_of(name, [](char c) {
      return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    if (is_name && weight > 0 && all.size() < most) all.emplace_back(weight, name);
  }
  std::ranges::stable_sort(all, std::greater<>(), [](const auto& each) { return each.first; });
  std::vector<std::string> languages;
  for (auto& each : all)
    languages.push_back(std::move(each.second));
  return languages;
}

std::string subscription_page(SubscriptionView view, const std::vector<TopicChoice>& choices,
                              std::string_view preferences_text, const std::vector<std::string>& languages) {
  auto wanted = languages;
  if (!choices.front().locale.empty()) wanted.insert(wanted.begin(), choices.front().locale);
  const auto language = chosen_language(choices, wanted);
  const auto* const found = find_subscription_words(base_of(language));
  const auto& words = found == nullptr ? default_subscription_words() : *found;
  const auto part = part_of(view, choices, preferences_text, language, words);
  return fmt::format(
      "<!doctype html>\n<html lang=\"{}\"><head><meta charset=\"utf-8\"><title>{}</title>"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><meta name=\"robots\" content=\"noindex\">"
      "<style>{}</style></head>\n<body><main><h1>{}</h1>{}</main></body></html>\n",
      words.language, part.heading, style, part.heading, part.body);
}

std::vector<std::pair<std::string, std::string>> subscription_headers() {
  return {
      {"Content-Security-Policy",
       "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Robots-Tag", "noindex, nofollow"},
      {"Vary", "Accept-Language"}};
}

}  // namespace mailroom::webhook
