#include "consumer/outcome_record.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace mailroom {
namespace {

using Seconds = std::chrono::duration<double>;

double seconds_of(WallTime time) {
  return Seconds(time.time_since_epoch()).count();
}

WallTime time_of(double seconds_since_1970) {
  return WallTime(std::chrono::round<Milliseconds>(Seconds(seconds_since_1970)));
}

}  // namespace

const char* delivery_state_name(DeliveryState state) {
  constexpr std::array names{"accepted", "deferred", "rejected", "unknown", "expired", "cancelled"};
  return names.at(static_cast<std::size_t>(state));
}

std::optional<std::string> outcomes_json(const Receipt& receipt) {
  if (!receipt.outcomes) return std::nullopt;
  const auto now = std::chrono::system_clock::now();
  auto array = nlohmann::json::array();
  for (const auto& outcome : *receipt.outcomes) {
    nlohmann::json object{{"token", outcome.token},
                          {"state", delivery_state_name(outcome.state)},
                          {"attempts", outcome.attempts},
                          {"unknowns", outcome.unknowns},
                          {"wait", outcome.wait.count()}};
    if (outcome.answered_at) object["ago"] = std::max(Seconds(now - *outcome.answered_at).count(), 0.0);
    if (!outcome.sink.empty()) object["sink"] = outcome.sink;
    if (outcome.code != 0) object["code"] = outcome.code;
    if (!outcome.reply.empty()) object["reply"] = outcome.reply;
    array.push_back(std::move(object));
  }
  return json_text(array);
}

std::string sinks_json(const std::vector<SinkState>& states) {
  auto array = nlohmann::json::array();
  for (const auto& state : states) {
    array.push_back({{"name", state.name},
                     {"failures", state.failures},
                     {"since", seconds_of(state.since)},
                     {"failed_at", seconds_of(state.failed_at)},
                     {"probe_at", seconds_of(state.probe_at)},
                     {"reason", state.reason}});
  }
  return json_text(array);
}

std::vector<SinkState> read_sinks(const pqxx::result& rows) {
  std::vector<SinkState> states;
  for (const auto& row : rows) {
    states.push_back({.name = row[0].as<std::string>(),
                      .failures = row[1].as<int>(),
                      .since = time_of(row[2].as<double>()),
                      .failed_at = time_of(row[3].as<double>()),
                      .probe_at = time_of(row[4].as<double>()),
                      .reason = row[5].as<std::string>()});
  }
  return states;
}

}  // namespace mailroom
