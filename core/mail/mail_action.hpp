// The two actions that a mail can be for, and their names.
#pragma once

#include <array>
#include <string_view>

namespace mailroom {

/// What a mail is about.
enum class MailAction { activation, recovery };

constexpr std::array<MailAction, 2> all_mail_actions{MailAction::activation, MailAction::recovery};

/// `activation` or `recovery`: as templates, links and the names of template files have it.
constexpr std::string_view mail_action_name(MailAction action) {
  return action == MailAction::activation ? "activation" : "recovery";
}

}  // namespace mailroom
