// Takes events out of what carries them, and gives each to the reader of its provider.

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "bounce/event_fields.hpp"
#include "bounce/provider.hpp"

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

/// Null for none.
const Provider* provider_of(const Json& event) {
  const auto all = providers();
  const auto found =
      std::ranges::find_if(all, [&](const auto* each) { return each->problem_of(event).empty(); });
  return found == all.end() ? nullptr : *found;
}

/// Why no provider's reader takes it. What looks like the form of scripts, is meant so.
std::string problem_of_stranger(const Json& event) {
  if (event.is_object() && event.contains("address") && event.contains("kind"))
    return find_provider("report")->problem_of(event);
  return "it is no event of a provider that is known";
}

/// Reads one event, which a body of several has at `place`.
void add_event(const Json& event, const Provider* provider, std::size_t place, std::string bytes,
               ReadEvents& read) {
  const auto problem = provider == nullptr ? problem_of_stranger(event) : provider->problem_of(event);
  if (!problem.empty()) {
    read.problem = place == 0 ? problem : fmt::format("event {}: {}", place, problem);
    return;
  }
  auto reading = provider->read(event);
  if (!reading.unknown.empty()) read.unknown.push_back(std::move(reading.unknown));
  if (reading.bounce) read.events.push_back({std::move(*reading.bounce), std::move(bytes)});
}

/// `provider_for`: says whose each event is.
template <typename ProviderFor>
ReadEvents read_body(std::string_view body, ProviderFor provider_for) {
  ReadEvents read;
  auto parsed = try_parse_json(body);
  if (parsed.is_discarded()) return {.problem = "it is no JSON"};
  if (!parsed.is_array()) {
    const auto event = content_of(std::move(parsed));
    add_event(event, provider_for(event), 0, std::string(body), read);
    return read;
  }
  std::size_t place = 0;
  for (const auto& event : parsed) {
    add_event(event, provider_for(event), ++place, plain_json(event), read);
    if (!read.problem.empty()) return {.problem = read.problem};
  }
  return read;
}

}  // namespace

bool is_event(std::string_view bytes) {
  return trimmed(bytes).starts_with('{') || trimmed(bytes).starts_with('[');
}

ReadEvents read_events(std::string_view body, const Provider& provider) {
  return read_body(body, [&](const Json&) { return &provider; });
}

ReadEvents read_events(std::string_view body) {
  return read_body(body, provider_of);
}

std::optional<Bounce> read_event(std::string_view bytes) {
  auto read = read_events(bytes);
  return read.events.empty() ? std::nullopt : std::optional(std::move(read.events.front().bounce));
}

}  // namespace mailroom::bounce
