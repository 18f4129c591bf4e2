// The same facts make the same body at each attempt, since receivers compare what they have.

#include "resend_api/outcome_event.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace mailroom::resend_api {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
using Word = std::pair<std::string_view, std::string_view>;

constexpr std::string_view suppressed = "the address is suppressed: ";
constexpr std::string_view may_have_arrived =
    "whether the relay has taken it is not known: it may have arrived";

constexpr std::array<Word, 8> plain_events{{{"accepted", "email.sent"},
                                            {"delivered", "email.delivered"},
                                            {"complained", "email.complained"},
                                            {"bounced", "email.bounced"},
                                            {"deferred", "email.delivery_delayed"},
                                            {"rejected", "email.failed"},
                                            {"expired", "email.failed"},
                                            {"unknown", "email.failed"}}};
constexpr std::array<Word, 3> bounce_types{
    {{"hard", "Permanent"}, {"soft", "Transient"}, {"undetermined", "Undetermined"}}};
constexpr std::array<Word, 9> bounce_subtypes{{{"user_unknown", "NoEmail"},
                                               {"has_moved", "NoEmail"},
                                               {"mailbox_full", "MailboxFull"},
                                               {"message_too_big", "MessageTooLarge"},
                                               {"content", "ContentRejected"},
                                               {"spam", "ContentRejected"},
                                               {"virus", "ContentRejected"},
                                               {"policy", "ContentRejected"},
                                               {"undetermined", "Undetermined"}}};

template <std::size_t size>
std::string word_for(const std::array<Word, size>& words, std::string_view text, std::string_view otherwise) {
  const auto found = std::ranges::find(words, text, &Word::first);
  return std::string(found == words.end() ? otherwise : found->second);
}

/// Empty for what is no event.
std::string type_of(const Json& facts, std::string_view state, std::string_view reply) {
  if (!text_at(facts, "topic").empty() && state != "bounced" && state != "complained") return {};
  if (state != "cancelled") return word_for(plain_events, state, "");
  if (facts.value("is_called_off", false)) return {};
  return reply.starts_with(suppressed) ? "email.suppressed" : "email.failed";
}

/// `smtp; 550 5.1.1 no such user`.
OrderedJson diagnostic_of(const Json& record) {
  std::string words = "smtp;";
  const auto code = record.value("code", 0);
  if (code != 0) words += fmt::format(" {}", code);
  for (const auto* name : {"status", "reply"})
    if (!text_at(record, name).empty()) words += " " + text_at(record, name);
  return OrderedJson::array({words});
}

OrderedJson bounce_of(const Json& facts, const std::string& reply) {
  const auto record = facts.value("bounce", Json::object());
  // A record that was pruned or forgotten meanwhile leaves the words of the outcome.
  const auto reason = record.empty() ? reply.substr(0, reply.find(':')) : text_at(record, "reason");
  return {{"type", word_for(bounce_types, text_at(record, "kind"), "Undetermined")},
          {"subType", word_for(bounce_subtypes, reason, "General")},
          {"message", reply},
          {"diagnosticCode", diagnostic_of(record.empty() ? facts : record)}};
}

OrderedJson suppressed_of(const std::string& reply) {
  const std::string_view why = std::string_view(reply).substr(suppressed.size());
  OrderedJson object;
  if (why.starts_with("bounce")) object["reason"] = "previous_bounce";
  if (why.starts_with("complaint")) object["reason"] = "previous_complaint";
  object["type"] = "OnAccountSuppressionList";
  object["message"] = reply;
  object["diagnosticCode"] = OrderedJson::array();
  return object;
}

OrderedJson data_of(const Json& facts, const std::string& from) {
  OrderedJson data;
  data["email_id"] = text_at(facts, "email_id");
  data["created_at"] = text_at(facts, "created_at");
  data["from"] = text_at(facts, "sender").empty() ? from : text_at(facts, "sender");
  data["to"] = OrderedJson::array();
  if (!text_at(facts, "recipient").empty()) data["to"].push_back(text_at(facts, "recipient"));
  data["subject"] = text_at(facts, "subject");
  if (!text_at(facts, "message_id").empty())
    data["message_id"] = fmt::format("<{}>", text_at(facts, "message_id"));
  const auto tags = facts.value("tags", Json::object());
  if (tags.is_object() && !tags.empty()) data["tags"] = tags;
  return data;
}

}  // namespace

std::optional<OutcomeEvent> outcome_event(const Json& facts, const std::string& from) {
  const auto state = text_at(facts, "state");
  const auto reply = text_at(facts, "reply");
  const auto type = type_of(facts, state, reply);
  if (type.empty()) return std::nullopt;
  auto data = data_of(facts, from);
  if (type == "email.bounced") data["bounce"] = bounce_of(facts, reply);
  if (type == "email.suppressed") data["suppressed"] = suppressed_of(reply);
  if (type == "email.failed") {
    const std::string words = reply.empty() ? state : fmt::format("{}: {}", state, reply);
    data["failed"] = {
        {"reason", state == "unknown" ? fmt::format("{}; {}", words, may_have_arrived) : words}};
  }
  OrderedJson event{{"type", type}, {"created_at", text_at(facts, "at")}, {"data", std::move(data)}};
  return OutcomeEvent{.id = "msg_" + text_at(facts, "event_id"), .body = plain_json(event)};
}

}  // namespace mailroom::resend_api
