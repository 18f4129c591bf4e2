// Answers of Resend's API: those of its SDKs fail for a null, a word or an error name that they do not know.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "base/json.hpp"
#include "resend_api/resend_shape.hpp"

namespace mailroom::resend_api {
namespace {

using http_door::Answer;
using http_door::Defaults;
using http_door::Fault;
using http_door::Post;
using http_door::Problem;
using http_door::Stored;
using OrderedJson = nlohmann::ordered_json;

struct Name {
  Problem problem;
  int status;
  const char* name;
  const char* words;  ///< where the fault has none
};

constexpr std::array<Name, 22> problem_names{{
    {Problem::no_key, 401, "missing_api_key",
     "Missing API key in the authorization header. Include the following header: Authorization: Bearer re_..."},
    {Problem::bad_key, 401, "invalid_api_key", "API key is invalid"},
    {Problem::sending_key, 401, "restricted_api_key", "This API key is restricted to only send emails"},
    {Problem::no_right, 403, "restricted_api_key", "The role of this API key may not ask for this"},
    {Problem::foreign_sender, 403, "validation_error", ""},
    {Problem::no_such_path, 404, "not_found", "Not found"},
    {Problem::no_such_message, 404, "not_found", "Email not found"},
    {Problem::no_such_method, 405, "method_not_allowed", "Method not allowed"},
    {Problem::too_large, 413, "validation_error", "The request is too large"},
    {Problem::encoded, 415, "validation_error", "Content-Encoding is not understood: send the body as it is"},
    {Problem::no_json, 400, "validation_error", "The body is no JSON"},
    {Problem::bad_request, 400, "validation_error", "The request is no HTTP"},
    {Problem::bad_idempotency_key, 400, "invalid_idempotency_key", ""},
    {Problem::missing_field, 422, "missing_required_field", ""},
    {Problem::bad_value, 422, "validation_error", ""},
    {Problem::bad_parameter, 422, "invalid_parameter", ""},
    {Problem::bad_attachment, 422, "invalid_attachment", ""},
    {Problem::other_content, 409, "invalid_idempotent_request",
     "This idempotency key has been used for another request: use another key"},
    {Problem::key_is_busy, 409, "concurrent_idempotent_requests",
     "Another request with this idempotency key is still being stored: ask again"},
    {Problem::over_rate, 429, "rate_limit_exceeded",
     "This key has sent as many mails as it may: try again later"},
    {Problem::unavailable, 503, "application_error", "Nothing was stored: try again later"},
    {Problem::not_known, 500, "internal_server_error",
     "Whether the mail was stored is not known: ask again with an idempotency key"},
}};

/// What became of a recipient, the one that needs a look first.
constexpr std::array<std::pair<std::string_view, std::string_view>, 24> events{{
    {"complained", "complained"}, {"bounced", "bounced"},
    {"rejected", "failed"},       {"expired", "failed"},
    {"unknown", "failed"},        {"dead", "failed"},
    {"no_token", "failed"},       {"skipped", "failed"},
    {"suppressed", "suppressed"}, {"deferred", "delivery_delayed"},
    {"waiting", "queued"},        {"leased", "queued"},
    {"in_gap", "queued"},         {"in_replay", "queued"},
    {"in gap", "queued"},         {"in replay", "queued"},
    {"not_taken", "queued"},      {"scheduled", "scheduled"},
    {"cancelled", "canceled"},    {"replaced", "canceled"},
    {"accepted", "sent"},         {"emitted", "sent"},
    {"not_recorded", "sent"},     {"delivered", "delivered"},
}};

std::string last_event(const nlohmann::json& states) {
  for (const auto& known : events) {
    const auto is_it = [&](const nlohmann::json& state) { return state == known.first; };
    if (states.is_array() && std::ranges::any_of(states, is_it)) return std::string(known.second);
  }
  return "queued";
}

OrderedJson list_of(const nlohmann::json& mail, const char* name) {
  const auto found = mail.find(name);
  return found == mail.end() || found->is_null() ? OrderedJson::array() : OrderedJson(*found);
}

OrderedJson text_of(const nlohmann::json& mail, const char* name) {
  return text_at(mail, name);
}

OrderedJson email_json(const nlohmann::json& mail, bool is_whole, const Defaults& defaults) {
  OrderedJson object;
  if (is_whole) object["object"] = "email";
  object["id"] = text_at(mail, "email_id");
  object["to"] = list_of(mail, "recipients");
  object["from"] = text_at(mail, "sender").empty() ? defaults.from : text_at(mail, "sender");
  object["created_at"] = text_at(mail, "created_at");
  object["subject"] = text_of(mail, "subject");
  if (is_whole) {
    for (const auto* name : {"html", "text"})
      if (!text_at(mail, name).empty()) object[name] = text_at(mail, name);
  }
  object["cc"] = list_of(mail, "cc");
  object["bcc"] = list_of(mail, "bcc");
  object["reply_to"] = list_of(mail, "reply_to");
  object["last_event"] = last_event(mail.value("states", nlohmann::json::array()));
  if (!text_at(mail, "message_id").empty()) object["message_id"] = "<" + text_at(mail, "message_id") + ">";
  if (!text_at(mail, "send_after").empty()) object["scheduled_at"] = text_at(mail, "send_after");
  if (is_whole && mail.contains("tags") && mail.at("tags").is_object() && !mail.at("tags").empty()) {
    object["tags"] = OrderedJson::array();
    for (const auto& [name, value] : mail.at("tags").items())
      object["tags"].push_back({{"name", name}, {"value", value}});
  }
  return object;
}

Answer good(const OrderedJson& body) {
  return {.status = 200, .body = plain_json(body)};
}

}  // namespace

Answer ResendShape::posted(const Post& post, const std::vector<Stored>& stored) const {
  if (!post.is_batch) return good({{"id", stored.front().id}});
  OrderedJson body{{"data", OrderedJson::array()}};
  auto bad = post.bad;
  for (const auto& each : stored) {
    if (each.problem.empty()) {
      body["data"].push_back({{"id", each.id}});
    } else {
      bad.emplace_back(each.place, each.problem);
    }
  }
  if (!post.is_permissive) return good(body);
  std::ranges::sort(bad);
  body["errors"] = OrderedJson::array();
  for (const auto& [place, words] : bad)
    body["errors"].push_back({{"index", place}, {"message", words}});
  return good(body);
}

Answer ResendShape::got(const nlohmann::json& mail, const Defaults& defaults) const {
  return good(email_json(mail, true, defaults));
}

Answer ResendShape::listed(const nlohmann::json& mails, bool has_more, const Defaults& defaults) const {
  OrderedJson body{{"object", "list"}, {"has_more", has_more}, {"data", OrderedJson::array()}};
  for (const auto& mail : mails)
    body["data"].push_back(email_json(mail, false, defaults));
  return good(body);
}

Answer ResendShape::changed(const std::string& id) const {
  return good({{"object", "email"}, {"id", id}});
}

Answer ResendShape::fault(const Fault& fault) const {
  const auto& found = *std::ranges::find(problem_names, fault.problem, &Name::problem);
  const std::string message = fault.message.empty() ? found.words : fault.message;
  return {.status = found.status,
          .body = plain_json(
              OrderedJson{{"statusCode", found.status}, {"name", found.name}, {"message", message}})};
}

/// The database has words of its own for what a mail has: the field leads to what the caller wrote.
Fault ResendShape::refusal(const std::string& words, std::optional<std::size_t> place) const {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> fields{
      {{"header", "headers"},
       {"Message-ID", "headers"},
       {"topic", "topic_id"},
       {"template", "template"},
       {"data ", "template"},
       {"action", "headers"},
       {"profile", "headers"},
       {"reply_to", "reply_to"},
       {"sender", "from"},
       {"attachment", "attachments"},
       {"tag", "tags"}}};
  const auto found = std::ranges::find_if(
      fields, [&](const auto& each) { return words.find(each.first) != std::string::npos; });
  const auto named = found == fields.end() || words.find('`') != std::string::npos
                         ? words
                         : fmt::format("`{}` is refused: {}", found->second, words);
  return {Problem::bad_value, place ? fmt::format("[{}] {}", *place, named) : named};
}

}  // namespace mailroom::resend_api
