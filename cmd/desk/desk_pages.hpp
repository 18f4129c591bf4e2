// The pages of the desk. Each takes its words from the command that says the same at a terminal.
#pragma once

#include <cstdint>
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

/// A command to be typed.
std::string command_html(std::string_view command);

}  // namespace mailroom::cmd
