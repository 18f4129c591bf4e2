// Fills the variables from the values of one mail, and rounds durations as people say them.

#include "templates/template_values.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/wording.hpp"

namespace mailroom::templates {

std::map<std::string, std::string> variables_of(const TemplateValues& values) {
  std::map<std::string, std::string> variables{{"action", values.action}, {"email", values.email}};
  if (values.login) variables.emplace("login", *values.login);
  if (values.link || values.code) {
    variables.emplace("code", values.code.value_or(""));
    variables.emplace("expires_at", expiry_text(values.expires_at));
    variables.emplace("expires_in", duration_words(values.expires_at - values.valid_from));
  }
  if (values.link) {
    variables.emplace("link", *values.link);
    variables.emplace("token", values.token);
  }
  return variables;
}

const std::vector<std::string>& variable_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const auto& [name, text] : variables_of({.login = "", .link = ""}))
      all.push_back(name);
    return all;
  }();
  return names;
}

std::variant<TemplateData, mail::Refusal> template_scope(const TemplateValues& values, std::string_view data,
                                                         DataFor purpose) {
  auto parsed = parse_template_data(data);
  if (std::holds_alternative<mail::Refusal>(parsed)) return parsed;
  auto& members = std::get<TemplateData>(parsed).members;
  for (auto& [name, text] : variables_of(values)) {
    const auto [other, is_new] =
        members.try_emplace(name, TemplateData{.kind = TemplateData::Kind::text, .text = text});
    const bool is_same = other->second.kind == TemplateData::Kind::text && other->second.text == text;
    if (!is_new && !is_same && purpose == DataFor::sending)
      return mail::Refusal{fmt::format(
          "the data has {0}, which mailroom sets itself in this mail: give it another name", name)};
  }
  return parsed;
}

std::string duration_words(Moment::duration duration) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration).count();
  constexpr std::int64_t minute = 60;
  constexpr std::int64_t hour = 60 * minute;
  constexpr std::int64_t day = 24 * hour;
  const auto rounded = [&](std::int64_t unit) {
    return seconds / unit + (seconds % unit * 2 >= unit ? 1 : 0);
  };
  if (seconds < 90 * minute) return counted(std::max<std::int64_t>(rounded(minute), 1), "minute");
  if (seconds < 36 * hour) return counted(rounded(hour), "hour");
  return counted(rounded(day), "day");
}

std::string expiry_text(Moment moment) {
  const auto text = date_text(moment);
  if (!text) return moment_text(moment);
  // From 2026-11-21T09:30:15Z.
  return text->substr(0, 10) + " " + text->substr(11, 5) + " UTC";
}

}  // namespace mailroom::templates
