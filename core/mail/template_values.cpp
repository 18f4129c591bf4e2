// Fills the variables from the values of one mail, and rounds durations as people say them.

#include "mail/template_values.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mailroom {

TemplateVariables variables_of(const TemplateValues& values) {
  return {{"action", std::string(mail_action_name(values.action))},
          {"code", values.action == MailAction::recovery ? values.code : ""},
          {"email", values.email},
          {"expires_at", expiry_text(values.expires_at)},
          {"expires_in", duration_words(values.expires_at - values.valid_from)},
          {"link", values.link},
          {"login", values.login},
          {"token", values.token}};
}

const std::vector<std::string>& variable_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const auto& [name, text] : variables_of({}))
      all.push_back(name);
    return all;
  }();
  return names;
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

}  // namespace mailroom
