// Stands in for the values of a real token wherever a mail is shown or tried out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cmd/terminal/context.hpp"
#include "mail/template_values.hpp"

namespace mailroom {

/// 2030-01-01 11:45 UTC, so that what is shown is the same each time. A mail that is really sent needs the
/// present.
constexpr Moment example_created_at{std::chrono::seconds(1'893'498'300)};

/// The values of a mail for trial, without a link. It names `account`, an id, email or login that is looked
/// up in the database, or an example account; the token is an example that does not verify, and it is valid
/// for 15 minutes from `created_at`. Throws Error(unusable) if no account has the name,
/// Error(usage) if several have it, and what Context::connect_to_schema() throws.
TemplateValues example_mail(MailAction action, const std::optional<std::string>& account, Moment created_at,
                            Context& context);

}  // namespace mailroom
