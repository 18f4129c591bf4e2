// Which page a path is.

#include <fmt/format.h>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cmd/desk/desk_pages.hpp"

namespace mailroom::cmd {
namespace {

desk::DeskPage first_page() {
  return {.title = "Search",
          .body = desk::search_form("") +
                  "<h2>What is found</h2><ul><li>an address, as ada@example.org</li>"
                  "<li>a reference of the application, as order:17, or a login</li>"
                  "<li>a message by its number or uuid, as message:17</li>"
                  "<li>a Message-ID, as &lt;…@…&gt;</li>"
                  "<li>the queue id with which a relay took a mail of the last day, as 4ZbX1q2Yxz</li></ul>"};
}

[[noreturn]] void refuse_path() {
  throw Error(ExitCode::unusable, "there is no such page");
}

std::int64_t id_in(std::string_view text) {
  const auto id = parse_number<std::int64_t>(text);
  if (!id) refuse_path();
  return *id;
}

/// `/message/17`, `/message/17/cancel`: the page of one message, account or token, or of what is done to it.
desk::DeskPage page_of_one(desk::DeskCall& call, const config::Settings& settings) {
  const auto path = call.path;
  const auto parts = split(path, '/');
  if (parts.size() == 4 && parts[1] == "message") {
    if (auto page = desk_message_action(call, id_in(parts[2]), parts[3], settings)) return std::move(*page);
    if (parts[3] == "html" && !call.changes) return desk_mail_frame(call, id_in(parts[2]), settings);
  }
  if (parts.size() != 3 || call.changes) refuse_path();
  if (parts[1] == "message") return desk_message_page(call, id_in(parts[2]), settings);
  if (parts[1] == "account") return desk_account_page(call, id_in(parts[2]), settings);
  if (parts[1] == "token") return desk_token_page(call, id_in(parts[2]), settings);
  refuse_path();
}

}  // namespace

desk::DeskPage desk_page(desk::DeskCall& call, const config::Settings& settings) {
  if (call.path == "/suppress" || call.path == "/free")
    return desk_address_action(call, call.path == "/suppress");
  if (call.changes) return page_of_one(call, settings);
  if (call.path == "/" || call.path == "/sign-in") return first_page();
  if (call.path == "/search") return desk_search_page(call, settings);
  if (call.path == "/export") return desk_export(call);
  if (call.path == "/today") return desk_today_page(call);
  if (call.path == "/status") return desk_status_page(call, settings);
  return page_of_one(call, settings);
}

std::string command_html(std::string_view command) {
  return fmt::format("<pre tabindex=\"0\">{}</pre>", desk::html_lines(command));
}

}  // namespace mailroom::cmd
