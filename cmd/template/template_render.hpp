// template render: a mail as its reader gets it, without sending it.
#pragma once

#include <optional>
#include <string>

#include "cmd/terminal/context.hpp"
#include "mail/mail_action.hpp"

namespace mailroom {

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
