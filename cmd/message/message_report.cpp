// The text and the JSON of messages: what was asked for, and what became of it.

#include "cmd/message/message_report.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::cmd {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Longer data are cut; -o json has all of them.
constexpr std::size_t shown_data = 200;

std::string file_size_text(std::int64_t bytes) {
  return bytes < 10'000 ? counted(bytes, "byte") : fmt::format("{} kB", with_thousands(bytes / 1000));
}

/// `receipt`, or the subject in quotes.
std::string content_text(const messages::MessageSummary& message) {
  if (!message.template_name.empty()) return shown_text(message.template_name);
  return message.subject.empty() ? "-" : fmt::format("'{}'", shown_text(message.subject));
}

/// `ada@example.org +2`: the address of the first, without a name.
std::string recipients_text(const messages::MessageSummary& message) {
  const std::string_view mailbox = message.recipient;
  const auto address = trimmed(mailbox.substr(mailbox.ends_with('>') ? mailbox.rfind('<') + 1 : 0));
  auto text = mailbox.empty()
                  ? std::string("-")
                  : shown_text(address.substr(0, address.size() - (address.ends_with('>') ? 1 : 0)));
  if (message.recipients > 1) text += fmt::format(" +{}", message.recipients - 1);
  return text;
}

/// The text without an underscore, as text has the words of docs/outcomes.md.
std::string state_word(std::string state) {
  std::replace(state.begin(), state.end(), '_', ' ');
  return state;
}

std::string last_reply_text(const messages::MessageDelivery& delivery) {
  if (delivery.code == 0) return delivery.reply;
  const auto code = std::to_string(delivery.code);
  return delivery.reply.starts_with(code) ? delivery.reply : code + " " + delivery.reply;
}

std::string content_sizes(const messages::MessageRecord& message) {
  std::vector<std::string> parts;
  if (message.text) parts.push_back("text of " + file_size_text(*message.text));
  if (message.html) parts.push_back("HTML of " + file_size_text(*message.html));
  if (message.raw) parts.push_back("raw mail of " + file_size_text(*message.raw));
  return joined(parts, ", ");
}

std::string file_text(const messages::MessageFile& file) {
  return fmt::format("{} ({}, {})", shown_text(file.name), shown_text(file.type), file_size_text(file.size));
}

std::string mailboxes_text(const std::vector<std::string>& mailboxes) {
  return shown_text(joined(mailboxes, ", "));
}

void add_content_lines(const messages::MessageRecord& message, TextTable& table) {
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) table.add({name, shown_text(value)});
  };
  add("template", message.summary.template_name);
  add("locale", message.locale);
  add("data", message.data.size() <= shown_data ? message.data : message.data.substr(0, shown_data) + "…");
  add("subject", message.summary.subject);
  add("content", content_sizes(message));
  for (const auto& file : message.files)
    add("attachment", file_text(file));
}

void add_time_lines(const messages::MessageRecord& message, TextTable& table) {
  const auto add = [&](const char* name, const std::optional<Moment>& moment) {
    if (moment) table.add({name, *moment >= year_10000 ? "never" : moment_text(*moment)});
  };
  if (!message.summary.owner.empty()) table.add({"owner", shown_text(message.summary.owner)});
  table.add({"created", fmt::format("{} by {}", moment_text(message.summary.created_at),
                                    shown_text(message.summary.enqueued_by))});
  add("send after", message.summary.send_after);
  add("expires", message.expires_at);
  add("replaced", message.replaced_at);
  add("cancelled", message.cancelled_at);
  add("erased", message.erased_at);
}

/// The Message-ID of all copies; empty if there is none yet, or a provider has given each its own.
std::string common_message_id(const std::vector<messages::MessageDelivery>& deliveries) {
  std::string id;
  for (const auto& delivery : deliveries) {
    if (!id.empty() && !delivery.message_id.empty() && delivery.message_id != id) return {};
    if (id.empty()) id = delivery.message_id;
  }
  return id;
}

/// Names the queue only where several take the message, and the Message-ID only where copies differ.
std::string render_deliveries(const std::vector<messages::MessageDelivery>& deliveries, std::size_t width) {
  constexpr auto left = TextTable::Align::left;
  constexpr auto right = TextTable::Align::right;
  const bool names_queue = std::ranges::any_of(
      deliveries, [&](const auto& each) { return each.queue != deliveries.front().queue; });
  std::vector<TextTable::Column> columns{{"recipient", left, true}, {"state", left, true}, {"token", right},
                                         {"attempts", right, true}, {"time", left, true},  {"reply"}};
  const bool names_ids =
      common_message_id(deliveries).empty() &&
      std::ranges::any_of(deliveries, [](const auto& each) { return !each.message_id.empty(); });
  if (names_queue) columns.insert(columns.begin(), {"queue"});
  if (names_ids) columns.push_back({"Message-ID"});
  TextTable table(std::move(columns));
  for (const auto& delivery : deliveries) {
    std::vector<std::string> cells{shown_text(delivery.recipient),
                                   state_word(delivery.state),
                                   delivery.token ? std::to_string(*delivery.token) : "-",
                                   with_thousands(delivery.attempts),
                                   delivery.at ? moment_text(*delivery.at) : "-",
                                   shown_text(last_reply_text(delivery))};
    if (names_queue) cells.insert(cells.begin(), delivery.queue.empty() ? "-" : shown_text(delivery.queue));
    if (names_ids) cells.push_back(delivery.message_id.empty() ? "-" : shown_text(delivery.message_id));
    table.add(std::move(cells));
  }
  return table.empty() ? "" : "\n" + table.render(width);
}

OrderedJson message_time_json(const std::optional<Moment>& moment) {
  if (moment && *moment >= year_10000) return "infinity";
  return moment ? moment_json<OrderedJson>(*moment) : OrderedJson(nullptr);
}

/// `text`, which is JSON in the database, or null.
OrderedJson parsed_or_null(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : parse_ordered_json(text);
}

OrderedJson message_delivery_json(const messages::MessageDelivery& delivery) {
  return {{"recipient", text_or_null<OrderedJson>(delivery.recipient)},
          {"state", delivery.state},
          {"queue", text_or_null<OrderedJson>(delivery.queue)},
          {"token", optional_json<OrderedJson>(delivery.token)},
          {"attempts", delivery.attempts},
          {"time", message_time_json(delivery.at)},
          {"code", delivery.code == 0 ? OrderedJson(nullptr) : OrderedJson(delivery.code)},
          {"reply", text_or_null<OrderedJson>(delivery.reply)},
          {"message_id", text_or_null<OrderedJson>(delivery.message_id)}};
}

OrderedJson message_file_json(const messages::MessageFile& file) {
  return {{"name", file.name},
          {"content_type", file.type},
          {"content_id", text_or_null<OrderedJson>(file.content_id)},
          {"size", file.size}};
}

/// `in 2h`, short enough for a column; show and JSON have the time.
std::string due_text(const messages::MessageSummary& message, Moment now) {
  if (!message.has_state("scheduled") || !message.send_after) return "-";
  const auto minutes = std::chrono::round<std::chrono::minutes>(*message.send_after - now).count();
  if (minutes <= 0) return "now";
  if (minutes < 120) return fmt::format("in {}min", minutes);
  const auto hours = (minutes + 30) / 60;
  return hours < 48 ? fmt::format("in {}h", hours) : fmt::format("in {}d", (hours + 12) / 24);
}

}  // namespace

std::string states_text(const messages::MessageSummary& message) {
  if (message.states.empty()) return "-";
  if (message.states.size() == 1) return state_word(message.states.front().first);
  std::vector<std::string> parts;
  for (const auto& [state, count] : message.states)
    parts.push_back(fmt::format("{} {}", with_thousands(count), state_word(state)));
  return joined(parts, ", ");
}

std::string content_and_recipient(const messages::MessageSummary& message) {
  const auto content = content_text(message);
  return fmt::format("{} to {}", content == "-" ? "" : ", " + content, recipients_text(message));
}

std::string render_message_list(const std::vector<messages::MessageSummary>& messages, Moment now,
                                std::size_t width) {
  if (messages.empty()) return "no message matches\n";
  constexpr auto left = TextTable::Align::left;
  const bool names_due =
      std::ranges::any_of(messages, [](const auto& message) { return message.has_state("scheduled"); });
  const bool names_owner = std::ranges::any_of(
      messages, [&](const auto& message) { return message.owner != messages.front().owner; });
  // Logins of one owner, such as those of mailroom submission.
  const bool names_role =
      std::ranges::any_of(
          messages,
          [&](const auto& message) { return message.enqueued_by != messages.front().enqueued_by; }) &&
      std::ranges::any_of(messages, [](const auto& message) { return message.enqueued_by != message.owner; });
  std::vector<TextTable::Column> columns{{"id", TextTable::Align::right},
                                         {"created", left, true},
                                         {"content"},
                                         {"recipient"},
                                         {"state", left, true},
                                         {"reference"}};
  if (names_due) columns.insert(columns.end() - 1, {"due", left, true});
  if (names_owner) columns.insert(columns.begin() + 1, {"owner", left, true});
  if (names_role) columns.insert(columns.begin() + 1, {"role", left, true});
  TextTable table(std::move(columns));
  for (const auto& message : messages) {
    std::vector<std::string> cells{
        std::to_string(message.id), moment_text(message.created_at),
        content_text(message),      recipients_text(message),
        states_text(message),       message.reference.empty() ? "-" : shown_text(message.reference)};
    if (names_due) cells.insert(cells.end() - 1, due_text(message, now));
    if (names_owner) cells.insert(cells.begin() + 1, message.owner.empty() ? "-" : shown_text(message.owner));
    if (names_role) cells.insert(cells.begin() + 1, shown_text(message.enqueued_by));
    table.add(std::move(cells));
  }
  return table.render(width);
}

std::string render_message(const messages::MessageRecord& message, std::size_t width) {
  TextTable table({{""}, {""}});
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) table.add({name, value});
  };
  const auto& summary = message.summary;
  add("message", std::to_string(summary.id));
  add("uuid", message.uuid);
  add("action", shown_text(summary.action));
  add("state", states_text(summary));
  if (summary.account) add("account", std::to_string(*summary.account));
  add("to", mailboxes_text(summary.to));
  add("cc", mailboxes_text(summary.cc));
  add("bcc", mailboxes_text(summary.bcc));
  add("from", shown_text(message.sender));
  if (message.return_path) add("return path", fmt::format("<{}>", shown_text(*message.return_path)));
  add("reply to", shown_text(message.reply_to));
  add("headers", shown_text(message.headers));
  add_content_lines(message, table);
  add("profile", shown_text(message.profile));
  add("topic", shown_text(message.topic));
  add("key", shown_text(message.key));
  add("reference", shown_text(summary.reference));
  add("Message-ID", shown_text(common_message_id(message.deliveries)));
  add_time_lines(message, table);
  return table.render(width) + render_deliveries(message.deliveries, width);
}

nlohmann::ordered_json summary_json(const messages::MessageSummary& message) {
  OrderedJson states = OrderedJson::object();
  for (const auto& [state, count] : message.states)
    states[state] = count;
  return {{"id", message.id},
          {"action", message.action},
          {"template", text_or_null<OrderedJson>(message.template_name)},
          {"recipient", text_or_null<OrderedJson>(message.recipient)},
          {"recipients", message.recipients},
          {"to", message.to},
          {"cc", message.cc},
          {"bcc", message.bcc},
          {"account", optional_json<OrderedJson>(message.account)},
          {"subject", text_or_null<OrderedJson>(message.subject)},
          {"reference", text_or_null<OrderedJson>(message.reference)},
          {"created_at", moment_json<OrderedJson>(message.created_at)},
          {"send_after", message_time_json(message.send_after)},
          {"enqueued_by", text_or_null<OrderedJson>(message.enqueued_by)},
          {"owner", text_or_null<OrderedJson>(message.owner)},
          {"states", std::move(states)}};
}

nlohmann::ordered_json message_json(const messages::MessageRecord& message) {
  auto object = summary_json(message.summary);
  object["uuid"] = text_or_null<OrderedJson>(message.uuid);
  object["sender"] = text_or_null<OrderedJson>(message.sender);
  object["reply_to"] = text_or_null<OrderedJson>(message.reply_to);
  object["headers"] = parsed_or_null(message.headers);
  object["locale"] = text_or_null<OrderedJson>(message.locale);
  object["data"] = parsed_or_null(message.data);
  object["text_size"] = optional_json<OrderedJson>(message.text);
  object["html_size"] = optional_json<OrderedJson>(message.html);
  object["raw_size"] = optional_json<OrderedJson>(message.raw);
  object["return_path"] = message.return_path ? OrderedJson(*message.return_path) : OrderedJson(nullptr);
  object["attachments"] = array_json<OrderedJson>(message.files, message_file_json);
  object["profile"] = text_or_null<OrderedJson>(message.profile);
  object["topic"] = text_or_null<OrderedJson>(message.topic);
  object["idempotency_key"] = text_or_null<OrderedJson>(message.key);
  object["expires_at"] = message_time_json(message.expires_at);
  object["replaced_at"] = message_time_json(message.replaced_at);
  object["cancelled_at"] = message_time_json(message.cancelled_at);
  object["erased_at"] = message_time_json(message.erased_at);
  object["deliveries"] = array_json<OrderedJson>(message.deliveries, message_delivery_json);
  return object;
}

}  // namespace mailroom::cmd
