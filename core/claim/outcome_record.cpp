// Joins equal outcomes of consecutive tokens, and writes text directly, since a batch may have thousands.

#include "claim/outcome_record.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
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

/// True if `second` is of the next token, and the rest is the same, as for the tokens of a line.
bool continues(const TokenOutcome& first, const TokenOutcome& second) {
  return second.token == first.token + 1 && first.state == second.state &&
         first.attempts == second.attempts && first.unknowns == second.unknowns &&
         first.wait == second.wait && first.answered_at == second.answered_at && first.code == second.code &&
         first.sink == second.sink && first.reply == second.reply;
}

/// Adds an object for the tokens from that of `outcome` to `last`. Written without a tree of objects, which
/// would take ten times the memory of the text.
void append_outcome(std::string& text, const TokenOutcome& outcome, std::int64_t last,
                    std::chrono::system_clock::time_point now) {
  auto to = std::back_inserter(text);
  fmt::format_to(to, R"({{"first":{},"last":{},"state":"{}","attempts":{},"unknowns":{})", outcome.token,
                 last, delivery_state_name(outcome.state), outcome.attempts, outcome.unknowns);
  if (outcome.state == DeliveryState::deferred) fmt::format_to(to, R"(,"wait":{})", outcome.wait.count());
  if (outcome.answered_at) {
    const auto ago = std::max(Seconds(now - *outcome.answered_at).count(), 0.0);
    fmt::format_to(to, R"(,"ago":{})", ago);
  }
  if (!outcome.sink.empty()) fmt::format_to(to, R"(,"sink":{})", json_text(nlohmann::json(outcome.sink)));
  if (outcome.code != 0) fmt::format_to(to, R"(,"code":{})", outcome.code);
  if (!outcome.reply.empty()) fmt::format_to(to, R"(,"reply":{})", json_text(nlohmann::json(outcome.reply)));
  text += "}";
}

}  // namespace

const char* delivery_state_name(DeliveryState state) {
  constexpr std::array names{"accepted", "deferred", "rejected", "unknown", "expired", "cancelled"};
  return names.at(static_cast<std::size_t>(state));
}

std::optional<std::string> outcomes_json(const Receipt& receipt) {
  if (!receipt.outcomes) return std::nullopt;
  const auto now = std::chrono::system_clock::now();
  const auto& outcomes = *receipt.outcomes;
  std::string text = "[";
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto first = i;
    while (i + 1 < outcomes.size() && continues(outcomes[i], outcomes[i + 1]))
      ++i;
    if (first > 0) text += ",";
    append_outcome(text, outcomes[first], outcomes[i].token, now);
  }
  return text + "]";
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
