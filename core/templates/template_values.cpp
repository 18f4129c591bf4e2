// Fills the variables from the values of one mail, and rounds durations as people say them.

#include "templates/template_values.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.hpp"
#include "base/wording.hpp"

namespace mailroom::templates {

namespace {

TemplateData text_data(std::string text) {
  return {.kind = TemplateData::Kind::text, .text = std::move(text)};
}

/// A duration in one unit; the others are 0.
struct OneUnit {
  std::int64_t minutes = 0;
  std::int64_t hours = 0;
  std::int64_t days = 0;
};

OneUnit in_one_unit(Moment::duration duration) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration).count();
  constexpr std::int64_t minute = 60;
  constexpr std::int64_t hour = 60 * minute;
  constexpr std::int64_t day = 24 * hour;
  const auto in = [&](std::int64_t unit) { return seconds / unit + (seconds % unit * 2 >= unit ? 1 : 0); };
  if (seconds < 90 * minute) return {.minutes = std::max<std::int64_t>(in(minute), 1)};
  if (seconds < 36 * hour) return {.hours = in(hour)};
  return {.days = in(day)};
}

TemplateData duration_data(Moment::duration duration) {
  const auto number = [](std::int64_t value) {
    return TemplateData{.kind = TemplateData::Kind::number, .text = std::to_string(value)};
  };
  auto data = text_data(duration_words(duration));
  const auto parts = in_one_unit(duration);
  data.members.emplace("minutes", number(parts.minutes));
  data.members.emplace("hours", number(parts.hours));
  data.members.emplace("days", number(parts.days));
  return data;
}

/// Of a date as 2026-11-21T09:30:15Z.
std::string minute_text(const std::string& date) {
  return date.substr(0, 10) + " " + date.substr(11, 5) + " UTC";
}

TemplateData expiry_data(Moment moment) {
  const auto exact = date_text(moment);
  auto data = text_data(exact ? minute_text(*exact) : moment_text(moment));
  const auto date =
      exact ? *exact : *date_text(std::clamp(moment, Moment(), year_10000 - std::chrono::seconds(1)));
  // Not a list of pairs, which would be copied.
  data.members.emplace("year", text_data(date.substr(0, 4)));
  data.members.emplace("month", text_data(date.substr(5, 2)));
  data.members.emplace("day", text_data(date.substr(8, 2)));
  data.members.emplace("hour", text_data(date.substr(11, 2)));
  data.members.emplace("minute", text_data(date.substr(14, 2)));
  return data;
}

/// All variables, without values.
const std::map<std::string, TemplateData>& all_variables() {
  static const auto all = variables_of({.login = "", .link = ""});
  return all;
}

}  // namespace

std::map<std::string, TemplateData> variables_of(const TemplateValues& values) {
  std::map<std::string, TemplateData> variables;
  variables.emplace("action", text_data(values.action));
  variables.emplace("email", text_data(values.email));
  if (values.login) variables.emplace("login", text_data(*values.login));
  if (values.unsubscribe_link) variables.emplace("unsubscribe_link", text_data(*values.unsubscribe_link));
  if (values.preferences_link) variables.emplace("preferences_link", text_data(*values.preferences_link));
  if (values.link || values.code) {
    variables.emplace("code", text_data(values.code.value_or("")));
    variables.emplace("expires_at", expiry_data(values.expires_at));
    variables.emplace("expires_in", duration_data(values.expires_at - values.valid_from));
  }
  if (values.link) {
    variables.emplace("link", text_data(*values.link));
    variables.emplace("token", text_data(values.token));
  }
  return variables;
}

const std::vector<std::string>& variable_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const auto& [name, value] : all_variables())
      all.push_back(name);
    return all;
  }();
  return names;
}

bool is_variable(std::string_view name) {
  const auto parts = split(name, '.');
  const auto found = all_variables().find(std::string(parts.front()));
  if (found == all_variables().end() || parts.size() > 2) return false;
  return parts.size() == 1 || found->second.members.count(parts.back()) > 0;
}

std::variant<TemplateData, mail::Refusal> template_scope(const TemplateValues& values, std::string_view data,
                                                         DataFor purpose) {
  auto parsed = parse_template_data(data);
  if (std::holds_alternative<mail::Refusal>(parsed)) return parsed;
  auto& members = std::get<TemplateData>(parsed).members;
  auto variables = variables_of(values);
  members.merge(variables);
  // What is left is in the data too.
  for (auto& [name, value] : variables) {
    auto& other = members.find(name)->second;
    const bool is_same = other.kind == TemplateData::Kind::text && other.text == value.text;
    if (is_same) {
      other = std::move(value);
    } else if (purpose == DataFor::sending) {
      return mail::Refusal{fmt::format(
          "the data has {0}, which mailroom sets itself in this mail: give it another name", name)};
    }
  }
  return parsed;
}

std::string duration_words(Moment::duration duration) {
  const auto parts = in_one_unit(duration);
  if (parts.minutes > 0) return counted(parts.minutes, "minute");
  return parts.hours > 0 ? counted(parts.hours, "hour") : counted(parts.days, "day");
}

std::string expiry_text(Moment moment) {
  const auto date = date_text(moment);
  return date ? minute_text(*date) : moment_text(moment);
}

}  // namespace mailroom::templates
