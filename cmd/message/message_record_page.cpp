// Shows mails as their bytes: a record is no mail reader, and a page within a page could show anything.

#include "cmd/message/message_record_page.hpp"

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/message/message_report.hpp"
#include "templates/template_program.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::string_view page_head = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.45 sans-serif; color: #111; background: #fff }
h1 { font-size: 1.4rem }
h2 { font-size: 1.1rem; margin-top: 2rem; border-bottom: 1px solid #666 }
table { border-collapse: collapse; width: 100% }
th { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; font-weight: 600 }
td, pre { overflow-wrap: anywhere; white-space: pre-wrap }
td { vertical-align: top; padding: .15rem 0 }
pre { font: .85rem/1.4 monospace }
@media print { body { margin: 0; max-width: none; font-size: 10pt } h2 { break-after: avoid } }
</style>
)";

/// What cannot be printed is left out; line ends stay.
std::string element(std::string_view tag, const std::string& text) {
  std::string lines;
  for (std::size_t from = 0; from <= text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    auto line = text.substr(from, end - from);
    if (line.ends_with('\r')) line.pop_back();
    lines += templates::escaped_html(shown_text(line));
    if (end < text.size()) lines += '\n';
    from = end + 1;
  }
  return fmt::format("<{0}>{1}</{0}>", tag, lines);
}

std::string row(const std::string& name, const std::string& value) {
  if (value.empty()) return {};
  return fmt::format("<tr>{}{}</tr>\n", element("th", name), element("td", value));
}

std::string time_or_empty(const std::optional<Moment>& moment) {
  return moment ? moment_text(*moment) : std::string();
}

std::string request_table(const messages::MessageRecord& message) {
  const auto& summary = message.summary;
  std::string files;
  for (const auto& file : message.files)
    files += fmt::format("{}{} ({}, {} bytes)", files.empty() ? "" : "\n", file.name, file.type, file.size);
  return "<table>\n" + row("message", std::to_string(summary.id)) + row("uuid", message.uuid) +
         row("asked for", fmt::format("{} by {}", moment_text(summary.created_at), summary.enqueued_by)) +
         row("belongs to", summary.owner) + row("action", summary.action) +
         row("reference", summary.reference) + row("idempotency key", message.key) +
         row("to", joined(summary.to, ", ")) + row("cc", joined(summary.cc, ", ")) +
         row("bcc", joined(summary.bcc, ", ")) + row("from", message.sender) +
         row("reply to", message.reply_to) + row("headers", message.headers) +
         row("profile", message.profile) + row("topic", message.topic) +
         row("template", summary.template_name) + row("locale", message.locale) + row("data", message.data) +
         row("subject", summary.subject) + row("attachments", files) +
         row("send after", time_or_empty(summary.send_after)) +
         row("expires", time_or_empty(message.expires_at)) +
         row("replaced", time_or_empty(message.replaced_at)) +
         row("cancelled", time_or_empty(message.cancelled_at)) +
         row("content removed", time_or_empty(message.erased_at)) + "</table>\n";
}

std::string mail_section(const RenderedMail& mail) {
  const auto& sent = mail.sent;
  auto text = fmt::format("{}\n<table>\n",
                          element("h2", fmt::format("Mail of token {}{}", sent.token,
                                                    sent.address.empty() ? "" : " to " + sent.address))) +
              row("SHA-256 on record", sent.content_hash.empty() ? "none" : sent.content_hash) +
              row("made of", sent.templates) + row("made again", verdict_on(mail) + ".");
  if (!mail.made) return text + "</table>\n";
  if (!mail.is_same())
    text += row("SHA-256 of today", mail.made->hash) + row("made of today", mail.made->templates);
  if (mail.made->has_token) text += row("not shown", "its token and code, by which its reader acts");
  return text + "</table>\n" + element("pre", mail.made->bytes) + "\n";
}

}  // namespace

std::string record_page(const LetterRecord& record) {
  const auto title = fmt::format("Record of message {}", record.message.summary.id);
  auto page = std::string(page_head) + element("title", title) + "\n</head>\n<body>\n" +
              element("h1", title) + "\n" +
              element("p", fmt::format("Made by mailroom at {} for {}. All times are UTC.",
                                       moment_text(record.made_at), record.made_by)) +
              "\n" + element("h2", "Request") + "\n" + request_table(record.message) +
              element("h2", "What became of it") + "\n";
  for (const auto& history : record.histories)
    page += element("pre", render_text(history, Width{0})) + "\n";
  for (const auto& mail : record.mails)
    page += mail_section(mail);
  return page + "</body>\n</html>\n";
}

}  // namespace mailroom::cmd
