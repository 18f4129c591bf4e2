// record: one letter with all that is on record of it, as a file: JSON for programs, or a page for a printer.

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

#include "audit/history.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/message/message_record_page.hpp"
#include "cmd/message/message_report.hpp"
#include "cmd/message/new_file.hpp"
#include "mail/address.hpp"

namespace mailroom::cmd {
namespace {

bool is_page(const std::string& path) {
  if (path.ends_with(".html")) return true;
  if (path.ends_with(".json")) return false;
  throw Error(ExitCode::usage, fmt::format("--to is '{}', and must end in .html or .json", path),
              "such as --to letter.html, a page that prints, or --to letter.json");
}

/// Leaves of a message what one of its recipients may know: that others got a copy in bcc is theirs.
void keep_recipient(messages::MessageRecord& message, const std::string& address) {
  const auto wanted = lower_case(mail::address_of_mailbox(address));
  const auto is_other = [&](const std::string& mailbox) {
    return lower_case(mail::address_of_mailbox(mailbox)) != wanted;
  };
  std::erase_if(message.summary.bcc, is_other);
  std::erase_if(message.deliveries, [&](const auto& delivery) { return is_other(delivery.recipient); });
  if (message.deliveries.empty())
    throw Error(ExitCode::unusable,
                fmt::format("message {} is not to {}", message.summary.id, shown_text(address)),
                "mailroom message show says to whom it is");
}

std::vector<audit::History> read_histories(db::Connection& connection, const messages::MessageRecord& message,
                                           bool is_of_one) {
  if (!is_of_one) return {audit::read_message_history(connection, {message.summary.id}, {})};
  std::vector<std::int64_t> tokens;
  for (const auto& delivery : message.deliveries) {
    if (delivery.token && (tokens.empty() || tokens.back() != *delivery.token))
      tokens.push_back(*delivery.token);
  }
  std::vector<audit::History> histories;
  for (const auto token : tokens)
    histories.push_back(audit::read_token_history(connection, token, {}));
  return histories;
}

/// Without the settings of the sender the record has the mail's hash, and not the mail.
std::vector<RenderedMail> mails_of(Context& context, db::Connection& connection,
                                   const messages::MessageRecord& message, const std::string& address) {
  try {
    return render_sent_mails(context, connection, message.summary.id, address);
  } catch (const Error& error) {
    if (error.code() != ExitCode::configuration) throw;
    std::vector<RenderedMail> mails;
    for (auto& sent : sent_mails_to(connection, message.summary.id, address))
      mails.push_back({.sent = std::move(sent), .problem = error.what()});
    return mails;
  }
}

std::string record_json(const LetterRecord& record) {
  nlohmann::ordered_json object{{"made_at", moment_json<nlohmann::ordered_json>(record.made_at)},
                                {"made_by", record.made_by},
                                {"message", message_json(record.message)},
                                {"mails", nlohmann::ordered_json::array()},
                                {"history", nlohmann::ordered_json::array()}};
  for (const auto& mail : record.mails)
    object["mails"].push_back(rendered_json(mail));
  for (const auto& history : record.histories) {
    std::istringstream lines(render_json(history));
    for (std::string line; std::getline(lines, line);)
      object["history"].push_back(parse_ordered_json(line));
  }
  return json_text(object) + "\n";
}

}  // namespace

ExitCode message_record(const MessageOptions& options, Context& context) {
  check_names(options.names, "mailroom message list");
  if (options.names.size() > 1) throw Error(ExitCode::usage, "a record is of one message");
  const bool wants_page = is_page(options.file);
  const auto connection = context.connect_to_schema("message");
  const auto id = messages::message_named(*connection, options.names.front());
  LetterRecord record{.made_at = connection->server_time(),
                      .made_by = queue::operator_author(*connection, "").actor,
                      .message = messages::read_message(*connection, id)};
  if (!options.recipient.empty()) keep_recipient(record.message, options.recipient);
  record.mails = mails_of(context, *connection, record.message, options.recipient);
  record.histories = read_histories(*connection, record.message, !options.recipient.empty());
  write_new_file(options.file, wants_page ? record_page(record) : record_json(record));
  context.print(fmt::format("wrote {}\n", options.file));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
