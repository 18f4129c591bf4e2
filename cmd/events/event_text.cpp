// Describes changes of queues and deliveries, and masks addresses, also where a relay repeats them.

#include "cmd/events/event_text.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "queue/queue_properties.hpp"

namespace mailroom::cmd {
namespace {

std::string spaced(std::string_view words, char space) {
  std::string text(words);
  std::replace(text.begin(), text.end(), ' ', space);
  return text;
}

/// True for the characters of an address, beside those of other alphabets.
bool is_of_address(char c) {
  constexpr std::string_view others = "@.!#$%&'*+-/=?^_`{|}~";
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || others.find(c) != std::string_view::npos;
}

/// `text` with addresses masked, and the words that are the local part of the account's address or its login.
std::string without_addresses(std::string_view text, const accounts::AccountRecord& account) {
  const auto local = lower_case(std::string_view(account.email).substr(0, account.email.rfind('@')));
  const auto login = lower_case(account.login);
  std::string masked;
  while (!text.empty()) {
    const auto end = std::find_if_not(text.begin(), text.end(), is_of_address) - text.begin();
    const auto word = text.substr(0, static_cast<std::size_t>(end));
    const auto name = lower_case(word.substr(0, word.find_last_not_of('.') + 1));
    const bool is_address = word.size() > 1 && word.find('@') != std::string_view::npos;
    const bool is_named = !word.empty() && (name == local || name == login);
    masked += is_address || is_named ? masked_address(word) : std::string(word);
    text.remove_prefix(word.size());
    if (text.empty()) break;
    masked += text.front();
    text.remove_prefix(1);
  }
  return masked;
}

}  // namespace

std::string time_text(const feed::Event& event) {
  return event.has_whole_seconds() ? moment_text(event.at) : precise_moment_text(event.at);
}

nlohmann::ordered_json time_json(const feed::Event& event) {
  if (!date_text(event.at)) return nullptr;
  return time_text(event);
}

std::string subject_text(const feed::Event& event) {
  if (const auto* token = event.subject_token()) return fmt::format("token {}", token->id);
  if (const auto* batch = event.batch()) return fmt::format("batch {}", batch->id);
  if (const auto* account = event.account()) return fmt::format("account {}", account->id);
  return event.queue().empty() ? "database" : "queue " + event.queue();
}

std::string ids_text(const feed::Event& event) {
  if (event.batch() == nullptr) return "";
  std::string text;
  for (const auto& range : event.matches ? selection::to_id_ranges(*event.matches) : event.batch()->tokens)
    text += (text.empty() ? "" : ",") + selection::id_range_text(range);
  return text;
}

nlohmann::ordered_json ids_json(const std::vector<selection::IdRange>& ranges) {
  auto ids = nlohmann::ordered_json::array();
  for (const auto& range : ranges) {
    for (auto id = range.first; id < range.end; ++id)
      ids.push_back(id);
  }
  return ids;
}

std::string skipped_text(const queue::SkipCounts& counts, char space) {
  std::string text;
  for (const auto& [reason, count] : counts.by_reason()) {
    if (count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_thousands(count), spaced(reason, space));
  }
  return text;
}

nlohmann::ordered_json skipped_json(const queue::SkipCounts& counts) {
  nlohmann::ordered_json object;
  for (const auto& [reason, count] : counts.by_reason())
    object[spaced(reason, '_')] = count;
  return object;
}

std::string answer_text(const feed::DeliveryAttempt& delivery) {
  const auto reply = shown_text(delivery.reply);
  if (delivery.code == 0) return reply;
  return reply.empty() ? std::to_string(delivery.code) : fmt::format("{} {}", delivery.code, reply);
}

std::string delivery_text(const feed::DeliveryAttempt& delivery) {
  const bool is_answer = delivery.state == "accepted" || delivery.state == "rejected";
  auto text = shown_text(delivery.state);
  if (delivery.is_cancelled_by_rewind()) text += " by a rewind";
  if (!delivery.sink.empty()) text += (is_answer ? " by " : ", ") + shown_text(delivery.sink);
  if (!delivery.address.empty()) text += " for " + shown_text(delivery.address);
  const auto answer = answer_text(delivery);
  if (!answer.empty()) return text + ": " + answer;
  return delivery.state == "deferred" ? text + " without an attempt" : text;
}

void add_delivery_outcome(nlohmann::ordered_json& object, const feed::DeliveryAttempt& delivery) {
  object["outcome"] = delivery.state;
  object["sink"] = text_or_null<nlohmann::ordered_json>(delivery.sink);
  object["address"] = text_or_null<nlohmann::ordered_json>(delivery.address);
  object["key"] = text_or_null<nlohmann::ordered_json>(delivery.key);
  object["code"] =
      delivery.code == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(delivery.code);
  object["reply"] = text_or_null<nlohmann::ordered_json>(delivery.reply);
  object["message_id"] = text_or_null<nlohmann::ordered_json>(delivery.message_id);
}

std::string collector_name(const queue::BatchRecord& batch) {
  constexpr std::string_view program = "mailroom ";
  const std::string_view name = batch.claimed_by;
  return shown_text(name.substr(name.starts_with(program) ? program.size() : 0));
}

std::int64_t number_in(const nlohmann::json& details, const char* key) {
  const auto found = details.find(key);
  return found != details.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::string pruned_text(const nlohmann::json& details) {
  auto text = counted(number_in(details, "tokens"), "token");
  if (const auto messages = number_in(details, "messages"); messages > 0)
    text += ", " + counted(messages, "message");
  const auto batches = counted(number_in(details, "batches"), "batch record");
  const auto deliveries = number_in(details, "deliveries");
  if (deliveries == 0) return fmt::format("{} and {}", text, batches);
  return fmt::format("{}, {} and {}", text, batches, counted(deliveries, "delivery record"));
}

bool is_of_consumer(feed::EventKind kind) {
  return kind == feed::EventKind::reloaded || kind == feed::EventKind::went_back;
}

std::string consumer_text(feed::EventKind kind, const nlohmann::json& details) {
  if (kind == feed::EventKind::reloaded) {
    const auto took = details.find("took");
    return took != details.end() && took->is_string() ? shown_text(took->get<std::string>()) : "";
  }
  return fmt::format("the newest batch is {}, although batch {} was claimed",
                     with_thousands(number_in(details, "newest")),
                     with_thousands(number_in(details, "known")));
}

/// `action magic_link, path /magic`: what the row has that it did not have before.
std::string action_change_text(const nlohmann::json& details, feed::EventKind kind) {
  const auto part = [&](const char* key) { return details.value(key, nlohmann::json()); };
  const auto name = part("action");
  std::string text = "action " + (name.is_string() ? shown_text(name.get<std::string>()) : "");
  const auto before = part("before");
  const auto after = part("after");
  if (!after.is_object() || kind == feed::EventKind::action_retired) return text;
  const auto value_text = [](const nlohmann::json& value) {
    return value.is_null() ? "none" : value.is_string() ? value.get<std::string>() : plain_json(value);
  };
  for (const auto& [key, value] : after.items()) {
    if (key == "action") continue;
    const auto old = before.is_object() ? before.value(key, nlohmann::json()) : nlohmann::json();
    if (old == value || (kind == feed::EventKind::action_created && value == false)) continue;
    text += kind == feed::EventKind::action_created
                ? fmt::format(", {} {}", shown_text(key), shown_text(value_text(value)))
                : fmt::format(", {} from {} to {}", shown_text(key), shown_text(value_text(old)),
                              shown_text(value_text(value)));
  }
  return text;
}

bool is_queue_change(feed::EventKind kind) {
  return kind >= feed::EventKind::queue_created && kind <= feed::EventKind::action_retired;
}

std::string queue_change_text(const feed::Operation& operation, const nlohmann::json& details) {
  const auto part = [&](const char* key) { return details.value(key, nlohmann::json()); };
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + shown_text(more); };
  if (operation.kind == feed::EventKind::budget_changed) {
    const auto name = part("budget");
    const auto paced = queue::paced_of(plain_json(part("after")));
    if (name.is_string()) add("budget " + name.get<std::string>());
    if (paced) add(queue::paced_text(*paced));
    return text;
  }
  if (operation.kind >= feed::EventKind::action_created && operation.kind <= feed::EventKind::action_retired)
    return action_change_text(details, operation.kind);
  const bool is_new = operation.kind == feed::EventKind::queue_created;
  if (is_new || operation.kind == feed::EventKind::queue_changed) {
    const auto before = is_new ? queue::QueueProperties() : queue::properties_of(plain_json(part("before")));
    for (const auto& change : queue::changes_between(before, queue::properties_of(plain_json(part("after")))))
      add(is_new ? fmt::format("{} {}", change.name, change.after)
                 : fmt::format("{} from {} to {}", change.name, change.before, change.after));
  }
  if (is_new || operation.kind == feed::EventKind::dropped)
    add("cursor " + with_thousands(number_in(details, "cursor")));
  return text;
}

feed::Event masked(feed::Event event) {
  const auto mask = [](accounts::AccountRecord& account) {
    if (!account.email.empty()) account.email = masked_address(account.email);
    if (!account.login.empty()) account.login = masked_address(account.login);
  };
  if (auto* token = std::get_if<feed::StoredToken>(&event.record)) {
    token->reference = without_addresses(token->reference, token->account);
    mask(token->account);
  }
  if (auto* delivery = std::get_if<feed::DeliveryAttempt>(&event.record)) {
    delivery->token.reference = without_addresses(delivery->token.reference, delivery->token.account);
    delivery->reply = without_addresses(delivery->reply, delivery->token.account);
    if (!delivery->address.empty()) delivery->address = masked_address(delivery->address);
    mask(delivery->token.account);
  }
  auto* operation = std::get_if<feed::Operation>(&event.record);
  if (operation != nullptr && operation->account) mask(*operation->account);
  return event;
}

}  // namespace mailroom::cmd
