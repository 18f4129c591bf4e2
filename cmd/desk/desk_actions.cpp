// What a page can change: a message is cancelled, moved to another time or sent again, an address suppressed
// or freed. Each shows the plan that the command at a terminal prints, asks for a reason, and is done as the
// role that has signed in, which is on record.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>

#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cmd/desk/desk_pages.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/message/message_export.hpp"
#include "cmd/message/message_plans.hpp"
#include "cmd/resend/resend_plan.hpp"
#include "mail/address.hpp"
#include "suppression/suppressions.hpp"

namespace mailroom::cmd {
namespace {

using desk::html_text;

constexpr std::size_t plan_width = 100;
constexpr std::size_t most_addresses = 10;

/// What a form asks for before it is done.
struct Action {
  std::string title{};
  std::string button{};
  std::string back{};    ///< the page of what it is about
  std::string plan{};    ///< what it would do
  std::string fields{};  ///< HTML: further fields of the form
  bool does_something = true;
  std::function<std::string(const queue::OperationAuthor&)> carry_out{};
};

std::string way_back(const Action& action) {
  return fmt::format("<p><a href=\"{}\">Back</a></p>", html_text(action.back));
}

desk::DeskPage form_of(const desk::DeskCall& call, const Action& action, const std::string& problem) {
  desk::DeskPage page{.status = problem.empty() ? 200 : 400, .title = action.title};
  if (!problem.empty()) page.body = fmt::format("<p class=\"bad\" role=\"alert\">{}</p>", html_text(problem));
  page.body += command_html(trimmed(action.plan));
  if (action.does_something)
    page.body += fmt::format(
        "<form method=\"post\" action=\"{}\"><input type=\"hidden\" name=\"csrf\" value=\"{}\">{}"
        "<p><label for=\"reason\">Reason, for the record</label><input id=\"reason\" name=\"reason\" required "
        "maxlength=\"500\" autocomplete=\"off\"></p><button>{}</button></form>",
        html_text(call.path), html_text(call.session.csrf), action.fields, html_text(action.button));
  page.body += way_back(action);
  return page;
}

desk::DeskPage page_of(desk::DeskCall& call, const Action& action) {
  if (!call.changes || !action.does_something) return form_of(call, action, {});
  const auto reason = call.field("reason");
  if (reason.empty()) return form_of(call, action, "A reason is needed. Nothing was changed.");
  auto author = queue::operator_author(*call.session.connection, reason);
  author.actor = call.session.actor();
  return {.title = action.title,
          .body = desk::note_html(trimmed(action.carry_out(author))) + way_back(action)};
}

Action cancelling(desk::DeskCall& call, std::int64_t message) {
  auto& connection = *call.session.connection;
  const auto plan = plan_cancellation(connection, message, plan_width);
  return {.title = fmt::format("Cancel message {}", message),
          .button = "Cancel the message",
          .plan = plan.text,
          .does_something = !plan.ids.empty(),
          .carry_out = [&connection, plan](const auto& author) {
            return carry_out_cancellation(connection, plan, author);
          }};
}

/// The time is a field of the form, and until it is sent, that of the message.
Action moving(desk::DeskCall& call, std::int64_t message) {
  auto& connection = *call.session.connection;
  const auto now = connection.server_time();
  const auto present = messages::read_message(connection, message).summary.send_after.value_or(now);
  const auto typed = call.field("send_after");
  const auto send_after = typed.empty() ? present : read_send_after(typed, now);
  const auto plan = plan_rescheduling(connection, message, send_after, plan_width);
  return {.title = fmt::format("Move message {}", message),
          .button = "Move the message",
          .plan = plan.text,
          .fields = fmt::format(
              "<p><label for=\"send_after\">Send after: a time in UTC, a duration from now such as 2h, "
              "or now</label><input id=\"send_after\" name=\"send_after\" value=\"{}\" required "
              "autocomplete=\"off\"></p>",
              html_text(moment_text(send_after))),
          .does_something = !plan.ids.empty(),
          .carry_out = [&connection, plan, send_after](const auto& author) {
            return carry_out_rescheduling(connection, plan, send_after, author);
          }};
}

struct Extension {
  std::string_view value;
  const char* words;
  Milliseconds time;
};
constexpr std::array<Extension, 4> extensions{{{"0", "no", Milliseconds(0)},
                                               {"15m", "for 15 minutes", std::chrono::minutes(15)},
                                               {"1h", "for an hour", std::chrono::hours(1)},
                                               {"1d", "for a day", std::chrono::hours(24)}}};

Action sending_again(desk::DeskCall& call, std::int64_t message, const config::Settings& settings) {
  auto& connection = *call.session.connection;
  const auto typed = call.field("extend");
  const auto* const chosen = std::ranges::find(
      extensions, typed.empty() ? extensions.front().value : std::string_view(typed), &Extension::value);
  if (chosen == extensions.end()) throw Error(ExitCode::usage, "there is no such extension");
  std::string options;
  for (const auto& each : extensions)
    options += fmt::format("<option value=\"{}\"{}>{}</option>", each.value,
                           &each == chosen ? " selected" : "", each.words);
  Action action{.title = fmt::format("Send message {} again", message), .button = "Send it again"};
  action.fields =
      "<p><label for=\"extend\">If it has expired, let it be valid again</label>"
      "<select id=\"extend\" name=\"extend\">" +
      options + "</select></p>";
  try {
    auto resend = plan_named_resend(connection, fmt::format("message:{}", message), chosen->time, settings);
    action.plan = resend.text;
    action.carry_out = [&connection, &settings, resend = std::move(resend)](const auto& author) {
      return carry_out_named_resend(connection, resend, author, settings.collect.channel);
    };
  } catch (const db::DatabaseError&) {
    throw;
  } catch (const db::ConnectionLost&) {
    throw;
  } catch (const Error& refusal) {
    // With an extension it may go.
    action.plan = refusal.what();
    action.carry_out = [refusal](const auto&) -> std::string { throw refusal; };
  }
  return action;
}

/// The address is a field of the query, and of the form.
Action suppressing(desk::DeskCall& call, bool adds) {
  auto& connection = *call.session.connection;
  const auto form = suppression::suppressed_form(call.field("address"));
  return {
      .title = (adds ? "Stop mails to " : "Let mails go again to ") + form,
      .button = adds ? "Stop mails" : "Let mails go",
      .back = "/search?q=" + percent_encoded(form),
      .plan =
          adds
              ? form + " gets no more messages; security mail, such as a password recovery, still goes to it."
              : form + " gets messages again.",
      .fields = fmt::format("<input type=\"hidden\" name=\"address\" value=\"{}\">", html_text(form)),
      .carry_out = [&connection, form, adds](const auto& author) {
        const auto count = adds ? suppression::add_suppressions(connection, {form}, {}, author)
                                : suppression::remove_suppressions(connection, {form}, {}, author);
        if (count == 0)
          return fmt::format("nothing to do: {}", adds ? "suppressed before" : "not suppressed");
        return fmt::format("done: {} gets {}", form, adds ? "no more messages" : "messages again");
      }};
}

desk::DeskPage not_allowed(const desk::DeskCall& call) {
  return {.status = 403,
          .title = "Not allowed",
          .body = fmt::format(
              "<p class=\"bad\" role=\"alert\">The role {} may not do this: it needs the rights of "
              "mailroom_operator.</p>",
              html_text(call.session.role))};
}

std::string link_to(const std::string& path, const std::string& text) {
  return fmt::format("<li><a class=\"button plain\" href=\"{}\">{}</a></li>", html_text(path),
                     html_text(text));
}

std::vector<std::string> addresses_of(const messages::MessageSummary& message) {
  std::vector<std::string> addresses;
  for (const auto* list : {&message.to, &message.cc, &message.bcc}) {
    for (const auto& mailbox : *list) {
      auto address = suppression::suppressed_form(mail::address_of_mailbox(mailbox));
      if (addresses.size() < most_addresses && std::ranges::find(addresses, address) == addresses.end())
        addresses.push_back(std::move(address));
    }
  }
  return addresses;
}

std::string address_links(desk::DeskCall& call, const std::vector<std::string>& addresses) {
  const auto& rights = call.session.rights;
  std::vector<suppression::Suppression> suppressed;
  if (rights.suppresses && !addresses.empty())
    suppressed = suppression::list_suppressions(*call.session.connection, addresses,
                                                static_cast<std::int64_t>(addresses.size()), std::string());
  std::string links;
  for (const auto& address : addresses) {
    const bool is_suppressed =
        std::ranges::find(suppressed, address, &suppression::Suppression::address) != suppressed.end();
    const auto query = "?address=" + percent_encoded(address);
    if (rights.suppresses)
      links += is_suppressed ? link_to("/free" + query, "Let mails go again to " + address)
                             : link_to("/suppress" + query, "Stop mails to " + address);
    if (rights.exports)
      links += link_to("/export" + query, fmt::format("All that is on record of {}, as a file", address));
  }
  return links;
}

}  // namespace

std::string desk_actions_html(desk::DeskCall& call, const messages::MessageSummary& message) {
  const auto& rights = call.session.rights;
  const auto path = fmt::format("/message/{}/", message.id);
  std::string links;
  if (rights.cancels && may_be_cancelled(message)) links += link_to(path + "cancel", "Cancel");
  if (rights.reschedules && message.has_state("scheduled"))
    links += link_to(path + "move", "Move to another time");
  if (rights.resends && !message.is_only("scheduled")) links += link_to(path + "resend", "Send again");
  links += address_links(call, addresses_of(message));
  return links.empty() ? links : "<ul class=\"actions\">" + links + "</ul>";
}

std::optional<desk::DeskPage> desk_message_action(desk::DeskCall& call, std::int64_t message,
                                                  std::string_view name, const config::Settings& settings) {
  const auto& rights = call.session.rights;
  const bool is_cancel = name == "cancel";
  const bool is_move = name == "move";
  if (!is_cancel && !is_move && name != "resend") return std::nullopt;
  if (is_cancel ? !rights.cancels : is_move ? !rights.reschedules : !rights.resends) return not_allowed(call);
  auto action = is_cancel ? cancelling(call, message)
                : is_move ? moving(call, message)
                          : sending_again(call, message, settings);
  action.back = fmt::format("/message/{}", message);
  return page_of(call, action);
}

std::string desk_address_html(desk::DeskCall& call, const std::string& address) {
  const auto links = address_links(call, {suppression::suppressed_form(address)});
  return links.empty() ? links : "<ul class=\"actions\">" + links + "</ul>";
}

desk::DeskPage desk_export(desk::DeskCall& call) {
  if (!call.session.rights.exports) return not_allowed(call);
  const auto address = mail::address_of_mailbox(call.field("address"));
  if (address.find('@') == std::string::npos) throw Error(ExitCode::usage, "that is no address");
  return {.title = "Export",
          .body = export_person(*call.session.connection, address).json,
          .file = "person.json"};
}

desk::DeskPage desk_address_action(desk::DeskCall& call, bool adds) {
  if (!call.session.rights.suppresses) return not_allowed(call);
  return page_of(call, suppressing(call, adds));
}

}  // namespace mailroom::cmd
