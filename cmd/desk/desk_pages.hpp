// The pages of the desk. Each takes its words from the command that says the same at a terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "audit/history.hpp"
#include "config/settings.hpp"
#include "desk/desk_door.hpp"
#include "messages/message_record.hpp"

namespace mailroom::cmd {

/// The page of a path. Throws Error(unusable) for a path of none.
desk::DeskPage desk_page(desk::DeskCall& call, const config::Settings& settings);

desk::DeskPage desk_search_page(desk::DeskCall& call, const config::Settings& settings);
desk::DeskPage desk_message_page(desk::DeskCall& call, std::int64_t message,
                                 const config::Settings& settings);
desk::DeskPage desk_account_page(desk::DeskCall& call, std::int64_t account,
                                 const config::Settings& settings);
desk::DeskPage desk_token_page(desk::DeskCall& call, std::int64_t token, const config::Settings& settings);

/// The mails of today.
desk::DeskPage desk_today_page(desk::DeskCall& call);
/// What `status` finds.
desk::DeskPage desk_status_page(desk::DeskCall& call, const config::Settings& settings);

/// The mail of a message, made anew of the templates of this host; or why there is none.
std::string desk_mail_html(desk::DeskCall& call, std::int64_t message, const config::Settings& settings);
/// Its HTML, for a frame.
desk::DeskPage desk_mail_frame(desk::DeskCall& call, std::int64_t message, const config::Settings& settings);

/// Links to what the role may do with a message and its addresses; empty for a reader.
std::string desk_actions_html(desk::DeskCall& call, const messages::MessageSummary& message);
/// What `name` does to a message: the plan with its form, or, of a form that was sent, what was done. Nullopt
/// for what is no action.
std::optional<desk::DeskPage> desk_message_action(desk::DeskCall& call, std::int64_t message,
                                                  std::string_view name, const config::Settings& settings);
/// Links to what the role may do with an address of an account or mail.
std::string desk_address_html(desk::DeskCall& call, const std::string& address);
/// All that is on record of a person, as a file.
desk::DeskPage desk_export(desk::DeskCall& call);
/// Likewise of an address: it gets no more mails, or gets them again.
desk::DeskPage desk_address_action(desk::DeskCall& call, bool adds);

/// A command to be typed.
std::string command_html(std::string_view command);

}  // namespace mailroom::cmd
