// The parts of a mail, and the template of each for an operator who has written none.
#pragma once

#include <array>
#include <string_view>

#include "mail/mail_action.hpp"

namespace mailroom {

/// A part of a mail, each a template of its own.
enum class MailPart { subject, text, html };

constexpr std::array<MailPart, 3> all_mail_parts{MailPart::subject, MailPart::text, MailPart::html};

/// The template of one part, and the name of the file that replaces it.
struct BuiltinTemplate {
  MailAction action;
  MailPart part;
  std::string_view file;
  std::string_view text;
};

/// One for each part of each action.
const std::array<BuiltinTemplate, 6>& builtin_templates();

const BuiltinTemplate& builtin_template(MailAction action, MailPart part);

}  // namespace mailroom
