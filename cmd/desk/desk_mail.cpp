// The mail of a message as its reader sees it, in the sandbox of the preview. Nothing of it runs, or is
// fetched.

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/wording.hpp"
#include "cmd/desk/desk_pages.hpp"
#include "cmd/template/template_render.hpp"
#include "mail/configured_mail.hpp"
#include "preview/preview_page.hpp"
#include "preview/template_preview.hpp"
#include "templates/template_files.hpp"

namespace mailroom::cmd {
namespace {

using desk::html_text;

/// Throws Error for what has no mail, here or any more.
preview::MailView read_mail_of(desk::DeskCall& call, std::int64_t id, const config::Settings& settings) {
  const auto largest = static_cast<std::size_t>(settings.send.max_size);
  const preview::StoredMessage message(*call.session.connection, id, largest);
  const auto own = config::with_profile(settings, message.profile());
  const auto configured = mail::parse_configured_mail(own);
  const auto from = configured.from.value_or(example_mailbox());
  const compose::MailWriter writer(
      from, mail::MessageBuilder(from, configured.reply_to, configured.headers),
      std::make_shared<const templates::TemplateSet>(templates::load_templates(own.send.templates)),
      configured.link.value_or(example_link_template()), largest);
  auto written = message.write(writer, std::string(example_token), message.data());
  if (const auto* refusal = std::get_if<mail::Refusal>(&written))
    throw Error(ExitCode::unusable, "the mail cannot be made: " + refusal->reason);
  return preview::read_mail(std::move(std::get<compose::WrittenMail>(written).message));
}

std::string mail_parts(const preview::MailView& mail, std::int64_t id) {
  std::vector<std::pair<std::string, std::string>> facts{{"Subject", mail.subject}};
  for (const auto& [name, value] : mail.headers) {
    if (name == "From" || name == "To" || name == "Cc" || name == "Reply-To") facts.emplace_back(name, value);
  }
  for (const auto& file : mail.files)
    facts.emplace_back("File", fmt::format("{} ({}, {})", file.name.empty() ? "-" : file.name, file.type,
                                           counted(static_cast<std::int64_t>(file.bytes.size()), "byte")));
  auto html = desk::facts_html(facts);
  if (mail.html)
    html += fmt::format(
        "<h3>HTML</h3><iframe sandbox=\"\" src=\"/message/{0}/html\" title=\"HTML of message {0}\" "
        "referrerpolicy=\"no-referrer\"></iframe>",
        id);
  if (mail.text) html += "<h3>Text</h3>" + command_html(*mail.text);
  return html;
}

}  // namespace

std::string desk_mail_html(desk::DeskCall& call, std::int64_t message, const config::Settings& settings) {
  if (!call.session.rights.reads_content) return desk::note_html("This role may not read what mails say.");
  try {
    return "<p>Made anew, of the templates of this host and with an example in place of its link.</p>" +
           mail_parts(read_mail_of(call, message, settings), message);
  } catch (const db::ConnectionLost&) {
    throw;
  } catch (const Error& error) {
    return desk::note_html(error.what());
  }
}

desk::DeskPage desk_mail_frame(desk::DeskCall& call, std::int64_t message, const config::Settings& settings) {
  const auto mail = read_mail_of(call, message, settings);
  return {.title = "Mail",
          .body = preview::framed_html(mail, false, false).html,
          .policy = preview::mail_frame_policy(false, false)};
}

}  // namespace mailroom::cmd
