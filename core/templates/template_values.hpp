// What mailroom itself knows of a mail, as templates name it, and how times and durations read in a mail.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "templates/template_data.hpp"

namespace mailroom::templates {

/// What mailroom knows of one mail.
struct TemplateValues {
  std::string action{};                ///< its name, as {action} of a link has it
  std::string email{};                 ///< of the reader
  std::optional<std::string> login{};  ///< nullopt: the mail is for no account
  std::optional<std::string> link{};   ///< nullopt: the action has none; see LinkTemplate
  std::string token{};                 ///< signed, if there is a link
  std::optional<std::string> code{};   ///< nullopt: the action asks for none
  /// Of a mail with a topic; nullopt for others.
  std::optional<std::string> unsubscribe_link{};
  std::optional<std::string> preferences_link{};
  Moment valid_from{};  ///< the token's creation, or when it was emitted again
  Moment expires_at{};
};

/// The variables that the mail has by their names in templates. A mail without a link has neither `link`,
/// `token`, `expires_at`, `expires_in` nor an empty `code`. `expires_in` counts from `valid_from`, not from
/// now, so that each attempt renders the same mail. It has `minutes`, `hours` and `days`, of which one is not
/// 0; `expires_at` has `year`, `month`, `day`, `hour` and `minute`.
std::map<std::string, TemplateData> variables_of(const TemplateValues& values);

/// The names of all variables that a mail without a topic may have, in alphabetical order.
const std::vector<std::string>& variable_names();
/// True for one of them, and for a part of one: `expires_in.days`.
bool is_variable(std::string_view name);

/// In a preview, data may replace the examples that stand in for what mailroom knows.
enum class DataFor { sending, preview };

/// The variables, and beside them the data, an object of JSON or an empty text. For sending, refuses data
/// that has the name of a variable with another text: it could replace a link.
std::variant<TemplateData, mail::Refusal> template_scope(const TemplateValues& values, std::string_view data,
                                                         DataFor purpose = DataFor::sending);

/// A rounded duration in words: `15 minutes`, `2 hours`, `3 days`; at least `1 minute`.
std::string duration_words(Moment::duration duration);

/// `2026-11-21 09:30 UTC`, rounded down; as moment_text() outside the years 0000 to 9999.
std::string expiry_text(Moment moment);

}  // namespace mailroom::templates
