// Takes over what the writer makes; its refusals are the token's.

#include "compose/mail_composer.hpp"

#include <utility>

namespace mailroom {

Composer::Added MailComposer::add(const TokenRow& row, const TokenText& token, DeliveryHistory history) {
  auto written = writer_->write(queue_, row, token);
  if (auto* refusal = std::get_if<Refusal>(&written)) return std::move(*refusal);
  auto& mail = std::get<WrittenMail>(written);
  Composed composed;
  composed.bytes = std::move(mail.message);
  composed.message.queue = queue_;
  composed.message.line = 1;
  composed.message.action = action_name(row.action);
  composed.message.tokens = {row.id};
  composed.message.created_at = row.created_at;
  composed.message.envelope = std::move(mail.envelope);
  composed.tokens.push_back(
      {.history = std::move(history), .text = {token.data(), token.size()}, .dated = row.dated()});
  return composed;
}

}  // namespace mailroom
