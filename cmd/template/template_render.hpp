// Template render: a mail as its reader gets it, without sending it, and the values that stand in for those
// of a real token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cmd/terminal/context.hpp"
#include "mail/template_files.hpp"
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

/// What `template render` shows.
enum class RenderedPart { subject_and_text, subject, text, html, message };

struct RenderOptions {
  MailAction action = MailAction::activation;
  RenderedPart part = RenderedPart::subject_and_text;
  std::optional<std::string> account;
};

/// Renders one mail with an example token, for an example account or one of the database.
ExitCode run_template_render(const RenderOptions& options, Context& context);

}  // namespace mailroom
