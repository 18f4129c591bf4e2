// Reads the row of a message as a sender's fetch would, and stands in for its token.

#include <fmt/format.h>

#include "base/error.hpp"
#include "claim/message_rows.hpp"
#include "compose/attachment_reader.hpp"
#include "db/values.hpp"
#include "preview/template_preview.hpp"

namespace mailroom::preview {
namespace {

std::string message_sql() {
  return fmt::format(R"(
SELECT m.action, coalesce(mailroom_address((m.recipients || m.cc || m.bcc)[1]), a.email, '') AS email,
  coalesce(a.login, '') AS login, floor(extract(epoch FROM m.created_at))::bigint AS created_at,
  coalesce(m.account, 0) AS account, m.erased_at IS NOT NULL AS is_erased, {}
FROM mailroom_messages m LEFT JOIN accounts a ON a.id = m.account
WHERE m.id = $1)",
                     claim::message_columns());
}

}  // namespace

StoredMessage::StoredMessage(db::Connection& connection, std::int64_t id, std::size_t largest)
    : rows_(connection.run(message_sql(), id)) {
  if (rows_.empty())
    throw Error(ExitCode::unusable, fmt::format("there is no message {}", id),
                "mailroom message list shows the newest");
  const auto row = rows_[0];
  if (row.flag("is_erased"))
    throw Error(ExitCode::unusable, fmt::format("the content of message {} has been removed", id),
                "messages.retention says how long it stays after a message has ended");
  queue::KnownActions actions(connection);
  action_ = *actions.require(row.view("action"));
  content_ = claim::read_message(row);
  raw_mails_.set(connection, content_, [&] { return std::vector{id}; });
  claim::TokenRow token{};
  token.action = &action_;
  claim::set_message(token, content_);
  template_name_ = content_.template_name.value_or("");
  if (content_.attachments == 0) return;
  auto files = compose::read_attachments(connection, id, largest);
  if (const auto* refusal = std::get_if<mail::Refusal>(&files))
    throw Error(ExitCode::unusable, fmt::format("message {}: {}", id, refusal->reason));
  files_ = std::get<std::vector<mail::Attachment>>(std::move(files));
}

std::string StoredMessage::title() const {
  return fmt::format("message {}", content_.id);
}

std::variant<compose::WrittenMail, mail::Refusal> StoredMessage::write(const compose::MailWriter& writer,
                                                                       const std::string& token,
                                                                       const std::string& data) const {
  constexpr std::int64_t example_life = 15 * 60;
  const auto row = rows_[0];
  auto content = content_;
  content.data = data;
  // It may be that of the action, which has moved since.
  if (!template_name_.empty()) content.template_name = template_name_;
  claim::TokenRow stand_in{.action = &action_,
                           .secret = std::nullopt,
                           .code = action_.has_code ? "12345" : "",
                           .email = row.view("email"),
                           .login = row.view("login"),
                           .created_at = row.number("created_at"),
                           .account = row.number("account"),
                           .mail_key = "0000000000000000",
                           .message = content.id,
                           .recipient = 1,
                           .content = &content};
  stand_in.expires_at = stand_in.created_at + (action_.lifetime ? action_.lifetime->count() : example_life);
  return writer.write("mailroom", stand_in, action_.path.empty() ? std::string() : token, files_);
}

}  // namespace mailroom::preview
