// Fills in the values from the row of a token. Its date is the mail's, so that attempts are equal.

#include "compose/mail_writer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "base/text.hpp"
#include "base/wording.hpp"
#include "mail/raw_mail.hpp"

namespace mailroom::compose {
namespace {

/// True if a header has an address that only SMTPUTF8 can carry.
bool has_utf8_address(const mail::MailContent& content) {
  const auto needs_it = [](const mail::Mailbox& mailbox) { return mail::needs_smtputf8(mailbox.address); };
  return (content.recipient && mail::needs_smtputf8(*content.recipient)) ||
         std::any_of(content.to.begin(), content.to.end(), needs_it) ||
         std::any_of(content.cc.begin(), content.cc.end(), needs_it) ||
         (content.sender && needs_it(*content.sender)) ||
         std::any_of(content.reply_to.begin(), content.reply_to.end(), needs_it);
}

/// Those of a message that can be mailed: each has an outcome of its own, and one that cannot must not keep
/// the others from their copies.
std::vector<mail::Mailbox> mailboxes_of(const std::vector<std::string>& texts) {
  std::vector<mail::Mailbox> mailboxes;
  for (const auto& text : texts) {
    auto mailbox = mail::parse_mailbox(text);
    if (auto* valid = std::get_if<mail::Mailbox>(&mailbox)) mailboxes.push_back(std::move(*valid));
  }
  return mailboxes;
}

/// Sets the sender and the addresses for replies that a message has. Returns why one cannot be used.
std::optional<mail::Refusal> take_senders(mail::MailContent& content, const claim::MessageContent& message) {
  if (!message.sender.empty()) {
    auto sender = mail::parse_mailbox(message.sender);
    if (const auto* refusal = std::get_if<mail::Refusal>(&sender))
      return mail::Refusal{fmt::format("the sender of the message: {}", refusal->reason)};
    content.sender = std::get<mail::Mailbox>(std::move(sender));
  }
  if (message.reply_to.empty()) return std::nullopt;
  auto reply_to = mail::parse_mailboxes(message.reply_to);
  if (const auto* refusal = std::get_if<mail::Refusal>(&reply_to))
    return mail::Refusal{fmt::format("the address for replies of the message: {}", refusal->reason)};
  content.reply_to = std::get<std::vector<mail::Mailbox>>(std::move(reply_to));
  return std::nullopt;
}

std::optional<std::string> text_of(const std::optional<std::string_view>& text) {
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

/// Puts what a message says into the draft of its mail. Returns why that cannot be.
std::optional<mail::Refusal> add_message(MailDraft& draft, const claim::MessageContent& message) {
  auto& content = draft.content;
  content.message = message.id;
  const bool names_recipients = !message.recipients.empty() || !message.cc.empty() || !message.bcc.empty();
  if (names_recipients) {
    content.to = mailboxes_of(message.recipients);
    content.cc = mailboxes_of(message.cc);
  }
  if (auto refusal = take_senders(content, message)) return refusal;
  auto headers = mail::parse_message_headers(message.headers);
  if (auto* refusal = std::get_if<mail::Refusal>(&headers)) return std::move(*refusal);
  content.headers = std::get<std::vector<mail::ExtraHeader>>(std::move(headers));
  content.given_id = mail::take_message_id(content.headers);
  draft.template_name = message.template_name.value_or("");
  if (!message.locale.empty()) draft.locale = message.locale;
  draft.data = message.data;
  content.subject = message.subject.value_or("");
  content.text = text_of(message.text);
  content.html = text_of(message.html);
  return std::nullopt;
}

}  // namespace

MailWriter::MailWriter(mail::Mailbox from, mail::MessageBuilder builder,
                       std::shared_ptr<const templates::TemplateSet> templates,
                       std::optional<mail::LinkTemplate> link, std::size_t max_size,
                       mail::Redirection redirection, std::optional<mail::BounceAddress> bounce_address,
                       std::optional<mail::SubscriptionLinks> subscriptions)
    : from_(std::move(from)),
      builder_(std::move(builder)),
      templates_(std::move(templates)),
      link_(std::move(link)),
      max_size_(max_size),
      redirection_(std::move(redirection)),
      bounce_address_(std::move(bounce_address)),
      subscriptions_(std::move(subscriptions)) {}

std::optional<delivery::Withheld> MailWriter::withheld(const claim::TokenRow& row) const {
  if (!is_allowed(row.email))
    return delivery::Withheld{fate::Outcome::cancelled, "send.allow does not have the address"};
  if (!link_ && !row.action->path.empty())
    return delivery::Withheld{fate::Outcome::deferred, "send.link is not set"};
  if (subscriptions_ && !subscriptions_->has_way() && row.content != nullptr && !row.content->topic.empty())
    return delivery::Withheld{fate::Outcome::deferred, "send.unsubscribe_link is not set"};
  return std::nullopt;
}

bool MailWriter::is_allowed(std::string_view recipient) const {
  if (redirection_.changes_nothing()) return true;
  const auto parsed = mail::parse_address(recipient);
  const auto* address = std::get_if<mail::Address>(&parsed);
  return address == nullptr || redirection_.destination_of(*address).has_value();
}

std::optional<mail::Address> MailWriter::redirected(std::string_view recipient) const {
  if (redirection_.changes_nothing()) return std::nullopt;
  const auto parsed = mail::parse_address(recipient);
  const auto* address = std::get_if<mail::Address>(&parsed);
  if (address == nullptr) return std::nullopt;
  auto destination = redirection_.destination_of(*address);
  return destination == *address ? std::nullopt : std::move(destination);
}

std::variant<WrittenMail, mail::Refusal> MailWriter::write(std::string_view queue, const claim::TokenRow& row,
                                                           std::string_view token,
                                                           std::vector<mail::Attachment> attachments) const {
  const auto address = mail::parse_address(row.email);
  if (const auto* refusal = std::get_if<mail::Refusal>(&address)) return *refusal;
  const auto& recipient = std::get<mail::Address>(address);
  const auto redirection = redirected(row.email);
  if (row.content != nullptr && row.content->raw_size) return write_raw(row, recipient, redirection);
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
                  .locale = std::string(row.locale),
                  .values = {.action = queue::short_action_name(action.name),
                             .email = std::string(row.email),
                             .token = std::string(token),
                             .valid_from = date,
                             .expires_at = bounded_moment(std::chrono::seconds(row.expires_at))}};
  if (action.has_code) draft.values.code = row.code;
  // A message for other recipients may name an account, too.
  if (row.content == nullptr || row.account != 0) draft.values.login = row.login;
  if (row.content != nullptr) {
    if (auto refusal = add_message(draft, *row.content)) return std::move(*refusal);
    if (has_subscription(row)) add_subscription(draft);
  }
  if (redirection) draft.content.recipient = recipient;
  return write(std::move(draft), redirection.value_or(recipient));
}

std::variant<WrittenMail, mail::Refusal> MailWriter::write(MailDraft draft, const mail::Address& to) const {
  if (!draft.template_name.empty()) {
    if (auto refusal = render(draft)) return std::move(*refusal);
  }
  auto built = builder_.build(draft.content);
  if (const auto* refusal = std::get_if<mail::Refusal>(&built)) return *refusal;
  auto& message = std::get<std::string>(built);
  if (auto refusal = problem_of_size(message.size())) return std::move(*refusal);
  return WrittenMail{.envelope = envelope_of(draft, to),
                     .subject = std::move(draft.content.subject),
                     .message = std::move(message),
                     .message_id = builder_.message_id(draft.content),
                     .templates = std::move(draft.files)};
}

bool MailWriter::has_subscription(const claim::TokenRow& row) const {
  return subscriptions_ && subscriptions_->has_way() && row.content != nullptr && !row.content->topic.empty();
}

void MailWriter::add_subscription(MailDraft& draft) const {
  const auto token = draft.content.token;
  if (subscriptions_->has_link()) {
    draft.values.unsubscribe_link = subscriptions_->link({.token = token}, draft.home);
    draft.values.preferences_link =
        subscriptions_->link({.use = mail::SubscriptionUse::preferences, .token = token}, draft.home);
  }
  auto& headers = draft.content.headers;
  const auto is_own = [](const mail::ExtraHeader& header) {
    return lower_case(header.name).starts_with("list-unsubscribe");
  };
  if (std::ranges::any_of(headers, is_own)) return;
  std::ranges::move(subscriptions_->headers(token, draft.home), std::back_inserter(headers));
}

std::optional<mail::Refusal> MailWriter::problem_of_size(std::size_t size) const {
  if (size <= max_size_) return std::nullopt;
  return mail::Refusal{fmt::format("the mail has {} bytes, at most {} are allowed (send.max_size)",
                                   with_thousands(static_cast<std::int64_t>(size)),
                                   with_thousands(static_cast<std::int64_t>(max_size_)))};
}

std::variant<WrittenMail, mail::Refusal> MailWriter::write_raw(
    const claim::TokenRow& row, const mail::Address& recipient,
    const std::optional<mail::Address>& redirection) const {
  const auto& content = *row.content;
  if (auto refusal = problem_of_size(static_cast<std::size_t>(*content.raw_size))) return std::move(*refusal);
  if (!content.raw) return mail::Refusal{"the content of the message has been removed"};
  const auto facts = mail::facts_of_raw_mail(*content.raw);
  const auto& to = redirection ? *redirection : recipient;
  WrittenMail mail{
      .envelope = {.from = std::string(content.return_path.value_or(from_.address.text())),
                   .to = to.text(),
                   .needs_8bit = facts.has_8bit,
                   .author = facts.author},
      .subject = content.subject ? std::string(*content.subject) : mail::subject_of_raw_mail(*content.raw),
      .message = redirection ? fmt::format("X-Mailroom-Recipient: {}\r\n", recipient.text()) : "",
      .message_id = facts.message_id,
      .is_raw = true};
  if (has_subscription(row) && trimmed(mail::raw_field(*content.raw, "list-unsubscribe")).empty()) {
    for (const auto& header : subscriptions_->headers(row.id, row.home))
      mail::append_raw_header(mail.message, header.name, header.value);
  }
  mail.message += *content.raw;
  auto& envelope = mail.envelope;
  if (bounce_address_) {
    envelope.id = bounce_address_->id_of(row.id, row.home);
    // RFC 5321, section 4.5.5: nothing must come back of what has no sender.
    if (bounce_address_->has_pattern() && !envelope.from.empty() && !content.keeps_return_path)
      envelope.from = bounce_address_->address_with(envelope.id);
  }
  // Relays refuse the one or the other, and programs choose both.
  if (content.return_path && envelope.from == *content.return_path)
    envelope.author += fmt::format(" <{}>", envelope.from);
  const auto sender = mail::parse_address(envelope.from);
  const auto* from = std::get_if<mail::Address>(&sender);
  if (!envelope.from.empty() && from == nullptr)
    return mail::Refusal{
        fmt::format("the return_path of the message: {}", std::get<mail::Refusal>(sender).reason)};
  if (from != nullptr) envelope.from = from->text();
  envelope.needs_smtputf8 = facts.has_utf8_header || mail::needs_smtputf8(to) ||
                            (from != nullptr && mail::needs_smtputf8(*from)) ||
                            (redirection && mail::needs_smtputf8(recipient));
  return mail;
}

std::optional<mail::Refusal> MailWriter::render(MailDraft& draft) const {
  if (link_ && !draft.values.token.empty())
    draft.values.link = link_->link(draft.values.action, draft.values.token);
  const auto scope = templates::template_scope(draft.values, draft.data, draft.purpose);
  if (const auto* refusal = std::get_if<mail::Refusal>(&scope)) return *refusal;
  auto rendered = templates_->render({.name = draft.template_name, .locale = draft.locale},
                                     std::get<templates::TemplateData>(scope), max_size_);
  if (const auto* refusal = std::get_if<mail::Refusal>(&rendered)) return *refusal;
  auto& mail = std::get<templates::RenderedMail>(rendered);
  // That of a message takes the place of that of its template.
  if (draft.content.subject.empty()) draft.content.subject = std::move(mail.subject);
  draft.content.text = std::move(mail.text);
  draft.content.html = std::move(mail.html);
  draft.files = std::move(mail.files);
  return std::nullopt;
}

delivery::Envelope MailWriter::envelope_of(const MailDraft& draft, const mail::Address& to) const {
  const auto& content = draft.content;
  const auto& sender = content.sender ? *content.sender : from_;
  delivery::Envelope envelope{.from = sender.address.text(),
                              .to = to.text(),
                              .needs_smtputf8 = mail::needs_smtputf8(to) || has_utf8_address(content) ||
                                                !builder_.utf8_sender().empty(),
                              .author = sender.address.text(),
                              .utf8_sender = builder_.utf8_sender()};
  if (bounce_address_ && content.token > 0) {
    envelope.id = bounce_address_->id_of(content.token, draft.home);
    if (bounce_address_->has_pattern()) envelope.from = bounce_address_->address_with(envelope.id);
  }
  return envelope;
}

}  // namespace mailroom::compose
