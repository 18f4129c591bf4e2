// The JSON of the schema's functions, and the comparison of properties by their texts.

#include "queue/queue_properties.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "queue/action.hpp"

namespace mailroom::queue {
namespace {

std::optional<std::int64_t> integer_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::vector<std::string> actions_in(const nlohmann::json& names) {
  std::vector<std::string> actions;
  if (!names.is_array()) return actions;
  for (const auto& name : names) {
    if (name.is_string()) actions.push_back(name.get<std::string>());
  }
  std::sort(actions.begin(), actions.end());
  return actions;
}

std::optional<PacedRate> read_paced(const nlohmann::json& object) {
  if (!object.is_object()) return std::nullopt;
  const auto tokens = integer_in(object, "tokens");
  const auto period = integer_in(object, "milliseconds");
  const auto burst = integer_in(object, "burst");
  if (!tokens || !period || !burst) return std::nullopt;
  return PacedRate{{static_cast<int>(*tokens), Milliseconds(*period)}, static_cast<int>(*burst)};
}

nlohmann::json write_paced(const PacedRate& paced) {
  return {{"tokens", paced.rate.count}, {"milliseconds", paced.rate.period.count()}, {"burst", paced.burst}};
}

}  // namespace

std::string text_or_none(const std::string& text) {
  return text.empty() ? "none" : text;
}

int PacedRate::default_burst(const config::Rate& rate) {
  constexpr Milliseconds share{100};
  return static_cast<int>(
      std::max<std::int64_t>(rate.count * (share / Milliseconds(1)) / rate.period.count(), 1));
}

std::string paced_text(const PacedRate& paced) {
  return fmt::format("{}, burst {}", config::format_rate(paced.rate), paced.burst);
}

bool QueueProperties::takes(const std::string& action) const {
  return actions.empty() || std::find(actions.begin(), actions.end(), action) != actions.end();
}

QueueProperties properties_of(const std::string& json) {
  const auto object = try_parse_json(sound_utf8(json));
  QueueProperties properties;
  if (!object.is_object()) return properties;
  properties.actions = actions_in(object.value("actions", nlohmann::json()));
  properties.priority = static_cast<int>(integer_in(object, "priority").value_or(0));
  properties.rate = read_paced(object.value("rate", nlohmann::json()));
  properties.budget = text_at(object, "budget");
  properties.batch_limit = text_at(object, "batch_limit");
  properties.batch_timeout = text_at(object, "batch_timeout");
  return properties;
}

std::string properties_json(const QueueProperties& properties) {
  const nlohmann::json object{
      {"actions", properties.actions.empty() ? nlohmann::json(nullptr) : nlohmann::json(properties.actions)},
      {"priority", properties.priority},
      {"rate", properties.rate ? write_paced(*properties.rate) : nlohmann::json(nullptr)},
      {"budget", text_or_null<nlohmann::json>(properties.budget)},
      {"batch_limit", text_or_null<nlohmann::json>(properties.batch_limit)},
      {"batch_timeout", text_or_null<nlohmann::json>(properties.batch_timeout)}};
  return plain_json(object);
}

std::optional<PacedRate> paced_of(const std::string& json) {
  return read_paced(try_parse_json(sound_utf8(json)));
}

std::string paced_json(const PacedRate& paced) {
  return plain_json(write_paced(paced));
}

std::vector<PropertyText> property_texts(const QueueProperties& properties) {
  std::vector<std::string> actions;
  for (const auto& action : properties.actions)
    actions.push_back(short_action_name(action));
  return {{"actions", actions.empty() ? "all" : joined(actions, ",")},
          {"priority", std::to_string(properties.priority)},
          {"rate", properties.rate ? paced_text(*properties.rate) : "none"},
          {"budget", text_or_none(properties.budget)},
          {"batch limit", text_or_none(properties.batch_limit)},
          {"batch timeout", text_or_none(properties.batch_timeout)}};
}

std::vector<PropertyChange> changes_between(const QueueProperties& before, const QueueProperties& after) {
  const auto old_texts = property_texts(before);
  const auto new_texts = property_texts(after);
  std::vector<PropertyChange> changes;
  for (std::size_t i = 0; i < old_texts.size(); ++i) {
    if (old_texts[i].value != new_texts[i].value)
      changes.push_back({old_texts[i].name, old_texts[i].value, new_texts[i].value});
  }
  return changes;
}

}  // namespace mailroom::queue
