// Fills in the values from the row of a token. Its date is the mail's, so that attempts are equal.

#include "compose/mail_writer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/wording.hpp"

namespace mailroom {
namespace {

/// True if a header has an address that only SMTPUTF8 can carry.
bool has_utf8_address(const MailContent& content) {
  const auto needs_it = [](const Mailbox& mailbox) { return needs_smtputf8(mailbox.address); };
  return (content.recipient && needs_smtputf8(*content.recipient)) ||
         std::any_of(content.to.begin(), content.to.end(), needs_it) ||
         std::any_of(content.cc.begin(), content.cc.end(), needs_it) ||
         (content.sender && needs_it(*content.sender)) || (content.reply_to && needs_it(*content.reply_to));
}

/// Those of a message that can be mailed: each has an outcome of its own, and one that cannot must not keep
/// the others from their copies.
std::vector<Mailbox> mailboxes_of(const std::vector<std::string>& texts) {
  std::vector<Mailbox> mailboxes;
  for (const auto& text : texts) {
    auto mailbox = parse_mailbox(text);
    if (auto* valid = std::get_if<Mailbox>(&mailbox)) mailboxes.push_back(std::move(*valid));
  }
  return mailboxes;
}

/// Sets `mailbox`, unless `text` is empty. Returns why it cannot be used; `what` names it.
std::optional<Refusal> take_mailbox(std::optional<Mailbox>& mailbox, std::string_view text,
                                    const char* what) {
  if (text.empty()) return std::nullopt;
  auto parsed = parse_mailbox(text);
  if (const auto* refusal = std::get_if<Refusal>(&parsed))
    return Refusal{fmt::format("the {} of the message: {}", what, refusal->reason)};
  mailbox = std::get<Mailbox>(std::move(parsed));
  return std::nullopt;
}

std::optional<std::string> text_of(const std::optional<std::string_view>& text) {
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

/// Puts what a message says into the draft of its mail. Returns why that cannot be.
std::optional<Refusal> add_message(MailDraft& draft, const MessageContent& message) {
  auto& content = draft.content;
  content.message = message.id;
  const bool names_recipients = !message.recipients.empty() || !message.cc.empty() || !message.bcc.empty();
  if (names_recipients) {
    content.to = mailboxes_of(message.recipients);
    content.cc = mailboxes_of(message.cc);
  }
  if (auto refusal = take_mailbox(content.sender, message.sender, "sender")) return refusal;
  if (auto refusal = take_mailbox(content.reply_to, message.reply_to, "address for replies")) return refusal;
  auto headers = parse_message_headers(message.headers);
  if (auto* refusal = std::get_if<Refusal>(&headers)) return std::move(*refusal);
  content.headers = std::get<std::vector<ExtraHeader>>(std::move(headers));
  draft.template_name = message.template_name.value_or("");
  draft.locale = message.locale;
  draft.data = message.data;
  content.subject = message.subject.value_or("");
  content.text = text_of(message.text);
  content.html = text_of(message.html);
  return std::nullopt;
}

}  // namespace

MailWriter::MailWriter(Mailbox from, MessageBuilder builder, TemplateSet templates,
                       std::optional<LinkTemplate> link, std::size_t max_size, Redirection redirection,
                       std::optional<BounceAddress> bounce_address)
    : from_(std::move(from)),
      builder_(std::move(builder)),
      templates_(std::move(templates)),
      link_(std::move(link)),
      max_size_(max_size),
      redirection_(std::move(redirection)),
      bounce_address_(std::move(bounce_address)) {}

std::optional<Withheld> MailWriter::withheld(const TokenRow& row) const {
  const auto recipient = parse_address(row.email);
  const auto* address = std::get_if<Address>(&recipient);
  if (address != nullptr && !redirection_.destination_of(*address))
    return Withheld{Outcome::cancelled, "send.allow does not have the address"};
  if (!link_ && !row.action->path.empty()) return Withheld{Outcome::deferred, "send.link is not set"};
  return std::nullopt;
}

std::optional<Address> MailWriter::redirected(const TokenRow& row) const {
  const auto recipient = parse_address(row.email);
  const auto* address = std::get_if<Address>(&recipient);
  if (address == nullptr) return std::nullopt;
  auto destination = redirection_.destination_of(*address);
  return destination == *address ? std::nullopt : std::move(destination);
}

std::variant<WrittenMail, Refusal> MailWriter::write(std::string_view queue, const TokenRow& row,
                                                     std::string_view token,
                                                     std::vector<Attachment> attachments) const {
  const auto address = parse_address(row.email);
  if (const auto* refusal = std::get_if<Refusal>(&address)) return *refusal;
  const auto& recipient = std::get<Address>(address);
  const auto redirection = redirected(row);
  const auto& action = *row.action;
  const auto date = bounded_moment(std::chrono::seconds(row.dated()));
  MailDraft draft{.content = {.date = date,
                              .queue = std::string(queue),
                              .key = std::string(row.mail_key),
                              .token = row.id,
                              .to = {{.name = "", .address = recipient}},
                              .attachments = std::move(attachments)},
                  .home = std::string(row.home),
                  .template_name = action.template_name,
                  .values = {.action = short_action_name(action.name),
                             .email = std::string(row.email),
                             .token = std::string(token),
                             .valid_from = date,
                             .expires_at = bounded_moment(std::chrono::seconds(row.expires_at))}};
  if (action.has_code) draft.values.code = row.code;
  // A message for other recipients may name an account, too.
  if (row.content == nullptr || row.account != 0) draft.values.login = row.login;
  if (row.content != nullptr) {
    if (auto refusal = add_message(draft, *row.content)) return std::move(*refusal);
  }
  if (redirection) draft.content.recipient = recipient;
  return write(std::move(draft), redirection.value_or(recipient));
}

std::variant<WrittenMail, Refusal> MailWriter::write(MailDraft draft, const Address& to) const {
  if (!draft.template_name.empty()) {
    if (auto refusal = render(draft)) return std::move(*refusal);
  }
  auto built = builder_.build(draft.content);
  if (const auto* refusal = std::get_if<Refusal>(&built)) return *refusal;
  auto& message = std::get<std::string>(built);
  if (message.size() > max_size_)
    return Refusal{fmt::format("the mail has {} bytes, at most {} are allowed (send.max_size)",
                               with_thousands(static_cast<std::int64_t>(message.size())),
                               with_thousands(static_cast<std::int64_t>(max_size_)))};
  return WrittenMail{.envelope = envelope_of(draft, to),
                     .subject = std::move(draft.content.subject),
                     .message = std::move(message)};
}

std::optional<Refusal> MailWriter::render(MailDraft& draft) const {
  if (link_ && !draft.values.token.empty())
    draft.values.link = link_->link(draft.values.action, draft.values.token);
  const auto scope = template_scope(draft.values, draft.data, draft.purpose);
  if (const auto* refusal = std::get_if<Refusal>(&scope)) return *refusal;
  auto rendered = templates_.render({.name = draft.template_name, .locale = draft.locale},
                                    std::get<TemplateData>(scope), max_size_);
  if (const auto* refusal = std::get_if<Refusal>(&rendered)) return *refusal;
  auto& mail = std::get<RenderedMail>(rendered);
  draft.content.subject = std::move(mail.subject);
  draft.content.text = std::move(mail.text);
  draft.content.html = std::move(mail.html);
  return std::nullopt;
}

Envelope MailWriter::envelope_of(const MailDraft& draft, const Address& to) const {
  const auto& content = draft.content;
  const auto& sender = content.sender ? *content.sender : from_;
  Envelope envelope{
      .from = sender.address.text(),
      .to = to.text(),
      .needs_smtputf8 = needs_smtputf8(to) || has_utf8_address(content) || !builder_.utf8_sender().empty(),
      .utf8_sender = builder_.utf8_sender()};
  if (bounce_address_ && content.token > 0) {
    envelope.id = bounce_address_->id_of(content.token, draft.home);
    envelope.from = bounce_address_->address_with(envelope.id);
  }
  return envelope;
}

}  // namespace mailroom
