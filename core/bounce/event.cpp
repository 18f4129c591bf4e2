// Takes an event out of its envelopes, and gives it to the reader of its provider.

#include "base/json.hpp"
#include "base/text.hpp"
#include "bounce/bounce.hpp"
#include "bounce/event_fields.hpp"

namespace mailroom::bounce {
namespace {

using Json = nlohmann::json;

/// What SNS and EventBridge carry; otherwise the object itself.
Json content_of(Json object) {
  const auto& message = member(object, "Message");
  if (text_member(object, "Type") == "Notification" && message.is_string())
    return try_parse_json(message.get_ref<const std::string&>());
  if (text_member(object, "source") == "aws.ses" && member(object, "detail").is_object())
    return member(object, "detail");
  return object;
}

}  // namespace

bool is_event(std::string_view bytes) {
  return trimmed(bytes).starts_with('{');
}

std::optional<Bounce> read_event(std::string_view bytes) {
  const auto event = content_of(try_parse_json(bytes));
  if (is_ses_event(event)) return read_ses_event(event);
  if (is_resend_event(event)) return read_resend_event(event);
  return std::nullopt;
}

}  // namespace mailroom::bounce
