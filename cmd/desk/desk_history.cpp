// The history that audit tells, as a page: of a message, an account, a token, or of all that an address or a
// reference names.

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/audit/audit_history.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/desk/desk_pages.hpp"
#include "cmd/message/message_report.hpp"
#include "desk/desk_search.hpp"
#include "mail/address.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {
namespace {

using desk::html_text;

constexpr std::int64_t most_events = 200;

audit::AuditRequest request_of(desk::DeskCall& call, const config::Settings& settings) {
  return {.queues = status::shown_queues(*call.session.connection, settings), .limit = most_events};
}

std::string time_html(Moment moment) {
  return fmt::format("<time datetime=\"{0}\">{0}</time>", html_text(moment_text(moment)));
}

/// An answer is missing of a mail that was accepted, or two are.
bool is_perhaps_twice(const audit::TokenDelivery& delivery) {
  return delivery.perhaps > 0 && delivery.accepted + delivery.perhaps > 1;
}

bool holds_perhaps_twice(const audit::History& history) {
  return std::ranges::any_of(history.tokens, [](const auto& token) {
    return std::ranges::any_of(token.deliveries, is_perhaps_twice);
  });
}

std::string sentences_html(const audit::History& history) {
  std::string html;
  for (const auto& sentence : history_sentences(history)) {
    html += fmt::format("<p>{}</p>", html_text(sentence.text));
    if (!sentence.trace.empty()) html += fmt::format("<p>trace {}</p>", html_text(sentence.trace));
  }
  return html;
}

std::string steps_html(const audit::History& history) {
  std::string html;
  for (const auto& step : history.next)
    html += fmt::format("<p>{}:</p>{}", html_text(step.text), command_html(step.command));
  return html.empty() ? html : "<h2>What can be done</h2>" + html;
}

std::string events_html(const audit::History& history) {
  if (history.timeline.entries.empty()) return "";
  std::string html = "<h2>Events</h2><ol class=\"events\">";
  for (const auto& event : history.timeline.entries)
    html += fmt::format("<li>{} <span class=\"mark\">{}</span> {}</li>", time_html(event.at),
                        html_text(event_name(event)), html_text(event_details(event)));
  html += "</ol>";
  if (history.timeline.omitted > 0)
    html += fmt::format("<p>{} older events are omitted.</p>", history.timeline.omitted);
  return html;
}

std::string history_html(const audit::History& history) {
  return (holds_perhaps_twice(history)
              ? "<p class=\"bad\"><span class=\"mark\">perhaps twice</span>: somebody may have got it twice.</p>"
              : "") +
         sentences_html(history) + steps_html(history) + events_html(history);
}

/// Of several messages each with its page, and what became of it.
std::string messages_html(const std::vector<messages::MessageSummary>& messages) {
  if (messages.empty()) return "";
  std::string html = "<h2>Messages</h2><ul>";
  for (const auto& message : messages)
    html += fmt::format("<li><a href=\"/message/{0}\">message {0}</a>{1}, {2}: {3}</li>", message.id,
                        html_text(content_and_recipient(message)), time_html(message.created_at),
                        html_text(states_text(message)));
  return html + "</ul>";
}

/// What it asks for, beside what the sentences say.
std::string message_facts(const messages::MessageRecord& message) {
  const auto& summary = message.summary;
  const auto time = [](const std::optional<Moment>& moment) {
    return !moment ? std::string() : *moment >= year_10000 ? std::string("never") : moment_text(*moment);
  };
  return desk::facts_html({{"To", joined(summary.to, ", ")},
                           {"Cc", joined(summary.cc, ", ")},
                           {"Bcc", joined(summary.bcc, ", ")},
                           {"State", states_text(summary)},
                           {"Subject", summary.subject},
                           {"Template", summary.template_name},
                           {"Language", message.locale},
                           {"Action", summary.action},
                           {"Role", summary.enqueued_by},
                           {"Owner", summary.owner == summary.enqueued_by ? std::string() : summary.owner},
                           {"Profile", message.profile},
                           {"Topic", message.topic},
                           {"Reference", summary.reference},
                           {"Asked for", moment_text(summary.created_at)},
                           {"Send after", time(summary.send_after)},
                           {"Expires", time(message.expires_at)},
                           {"Content removed", time(message.erased_at)}});
}

desk::DeskPage page_of_find(desk::DeskCall& call, const desk::DeskFind& found, const std::string& text,
                            const config::Settings& settings) {
  auto& connection = *call.session.connection;
  auto request = request_of(call, settings);
  if (text.find('@') != std::string::npos) request.address = mail::address_of_mailbox(text);
  auto history = found.account
                     ? audit::read_account_history(connection, found.account->id, found.messages, request)
                     : audit::read_message_history(connection, found.messages, request);
  add_steps(connection, history);
  return {.title = shown_text(text),
          .body = desk::search_form(text) +
                  (request.address.empty() ? std::string() : desk_address_html(call, request.address)) +
                  messages_html(history.messages) +
                  (found.has_more ? "<p>Older messages are omitted.</p>" : "") +
                  "<h2>What became of it</h2>" + history_html(history)};
}

}  // namespace

desk::DeskPage desk_search_page(desk::DeskCall& call, const config::Settings& settings) {
  const auto text = call.field("q");
  if (text.empty()) return {.location = "/"};
  const auto found = desk::find_at_desk(*call.session.connection, text);
  if (found.token && found.messages.empty() && !found.account)
    return {.location = fmt::format("/token/{}", *found.token)};
  if (found.messages.size() == 1 && !found.account)
    return {.location = fmt::format("/message/{}", found.messages.front())};
  if (!found.empty()) return page_of_find(call, found, text, settings);
  return {.status = 404,
          .title = "Nothing found",
          .body = desk::search_form(text) + desk::note_html("Nothing on record is called so.") +
                  (found.note.empty() ? std::string() : fmt::format("<p>{}</p>", html_text(found.note)))};
}

desk::DeskPage desk_message_page(desk::DeskCall& call, std::int64_t id, const config::Settings& settings) {
  auto& connection = *call.session.connection;
  const auto message = messages::read_message(connection, id);
  auto history = audit::read_message_history(connection, {id}, request_of(call, settings));
  add_steps(connection, history);
  return {.title = fmt::format("Message {}", id),
          .body = message_facts(message) + desk_actions_html(call, message.summary) +
                  "<h2>What became of it</h2>" + history_html(history) + "<h2>The mail</h2>" +
                  desk_mail_html(call, id, settings)};
}

desk::DeskPage desk_account_page(desk::DeskCall& call, std::int64_t id, const config::Settings& settings) {
  auto& connection = *call.session.connection;
  auto history = audit::read_account_history(connection, id, {}, request_of(call, settings));
  add_steps(connection, history);
  return {.title = fmt::format("Account {}", id), .body = history_html(history)};
}

desk::DeskPage desk_token_page(desk::DeskCall& call, std::int64_t id, const config::Settings& settings) {
  auto& connection = *call.session.connection;
  auto history = audit::read_token_history(connection, id, request_of(call, settings));
  add_steps(connection, history);
  return {.title = fmt::format("Token {}", id), .body = history_html(history)};
}

}  // namespace mailroom::cmd
