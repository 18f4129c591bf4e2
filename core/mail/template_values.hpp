// The variables that templates may use, and how times and durations read in a mail.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "mail/template_files.hpp"

namespace mailroom {

/// What a template may show of one mail.
struct TemplateValues {
  MailAction action = MailAction::activation;
  std::string email{};
  std::string login{};
  std::string link{};   ///< see LinkTemplate
  std::string token{};  ///< signed
  std::string code{};   ///< may be empty; shown in a recovery mail only, since nothing asks for another
  Moment valid_from{};  ///< the token's creation, or when it was emitted again
  Moment expires_at{};
};

/// The variables by their names in templates, each with its text.
using TemplateVariables = std::map<std::string, std::string>;

/// `expires_in` counts from `valid_from`, not from now, so that each attempt renders the same
/// mail.
TemplateVariables variables_of(const TemplateValues& values);

/// The names of all variables, in alphabetical order.
const std::vector<std::string>& variable_names();

/// A rounded duration in words: `15 minutes`, `2 hours`, `3 days`; at least `1 minute`.
std::string duration_words(Moment::duration duration);

/// `2026-11-21 09:30 UTC`, rounded down; as moment_text() outside the years 0000 to 9999.
std::string expiry_text(Moment moment);

}  // namespace mailroom
