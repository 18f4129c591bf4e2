// Fills in the values from the row of a token. Its date is the mail's, so that attempts are equal.

#include "compose/mail_writer.hpp"

#include <utility>

namespace mailroom {

MailWriter::MailWriter(Mailbox from, MessageBuilder builder, TemplateSet templates, LinkTemplate link)
    : from_(std::move(from)),
      builder_(std::move(builder)),
      templates_(std::move(templates)),
      link_(std::move(link)) {}

std::variant<WrittenMail, Refusal> MailWriter::write(std::string_view queue, const TokenRow& row,
                                                     std::string_view token) const {
  const auto address = parse_address(row.email);
  if (const auto* refusal = std::get_if<Refusal>(&address)) return *refusal;
  const bool is_activation = row.action->name == Actions::of_sign_up().name;
  return write({.queue = queue,
                .key = row.mail_key,
                .id = row.id,
                .values = {.action = is_activation ? MailAction::activation : MailAction::recovery,
                           .email = std::string(row.email),
                           .login = std::string(row.login),
                           .link = {},
                           .token = std::string(token),
                           .code = std::string(row.code),
                           .valid_from = bounded_moment(std::chrono::seconds(row.dated())),
                           .expires_at = bounded_moment(std::chrono::seconds(row.expires_at))}},
               std::get<Address>(address));
}

std::variant<WrittenMail, Refusal> MailWriter::write(MailValues mail, const Address& to) const {
  mail.values.link = link_.link(mail.values.action, mail.values.token);
  const auto content = templates_.render(mail.values);
  auto message = builder_.build({.date = mail.values.valid_from,
                                 .queue = mail.queue,
                                 .key = mail.key,
                                 .token = mail.id,
                                 .to = to,
                                 .subject = content.subject,
                                 .text = content.text,
                                 .html = content.html});
  if (const auto* refusal = std::get_if<Refusal>(&message)) return *refusal;
  return WrittenMail{.envelope = {.from = from_.address.text(),
                                  .to = to.text(),
                                  .needs_smtputf8 = needs_smtputf8(to) || !builder_.utf8_sender().empty(),
                                  .utf8_sender = builder_.utf8_sender()},
                     .subject = content.subject,
                     .message = std::move(std::get<std::string>(message))};
}

Composer::Added MailComposer::add(const TokenRow& row, std::string_view token, DeliveryHistory history) {
  auto written = writer_->write(queue_, row, token);
  if (auto* refusal = std::get_if<Refusal>(&written)) return std::move(*refusal);
  auto& mail = std::get<WrittenMail>(written);
  Composed composed;
  composed.bytes = std::move(mail.message);
  composed.message.queue = queue_;
  composed.message.line = 1;
  composed.message.action = row.action->name;
  composed.message.tokens = {row.id};
  composed.message.created_at = row.created_at;
  composed.message.envelope = std::move(mail.envelope);
  composed.tokens.push_back({.history = std::move(history),
                             .text = std::string(token),
                             .address = composed.message.envelope.to,
                             .dated = row.dated()});
  return composed;
}

}  // namespace mailroom
