// The claims of an order: what each acknowledges, what it gets, and what is left when all scripts have ended.

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

#include "fault/order_player.hpp"

namespace mailroom::test {
namespace {

/// After so many claims that take something, a queue of a few tokens does not get empty any more.
constexpr int most_claims = 40;

std::string ids_text(const std::vector<LeasedToken>& tokens) {
  std::string text;
  for (const auto& token : tokens)
    text += fmt::format("{}[{},{})", text.empty() ? "" : ",", token.id, token.id + 1);
  return "{" + text + "}";
}

std::vector<LeasedToken> skipped_of(const LeaseRecord& lease) {
  std::vector<LeasedToken> skipped;
  std::ranges::copy_if(lease.tokens, std::back_inserter(skipped),
                       [](const auto& token) { return token.state != "due"; });
  return skipped;
}

}  // namespace

std::string OrderPlayer::outcomes_of(const Actor& actor, LeaseRecord& lease) const {
  std::string text;
  for (const auto& token : lease.tokens) {
    const bool defers = actor.script->defers && token.state == "due" && !actor.deferred.contains(token.id);
    if (defers) lease.deferred.insert(token.id);
    const auto* state = defers                              ? "deferred"
                        : token.state == "expired"          ? "expired"
                        : token.state != "due"              ? "cancelled"
                        : lease.withheld.contains(token.id) ? "rejected"
                                                            : "accepted";
    text += fmt::format(
        R"({}{{"first":{},"last":{},"state":"{}","address":"{}@test.example","attempts":1,"unknowns":0{}}})",
        text.empty() ? "" : ",", token.id, token.id, state, token.name,
        defers ? R"(,"wait":0,"sink":"relay","code":451)" : "");
  }
  return "[" + text + "]";
}

void OrderPlayer::send_claim(Actor& actor, const std::string& queue, int limit, bool holds) {
  auto& session = session_of(actor);
  actor.receipt.reset();
  std::optional<std::size_t> held;
  if (holds) {
    if (!actor.leases.empty()) held = actor.leases.back();
  } else if (!actor.leases.empty()) {
    actor.receipt = actor.leases.front();
    if (actor.leases.size() > 1) held = actor.leases.back();
  }
  SteppingSession::Values receipt{std::nullopt, "0", "0", "0", "0", "0", "0", "{}", std::nullopt};
  if (actor.receipt) {
    auto& lease = history_.leases[*actor.receipt];
    const auto skipped = skipped_of(lease);
    const auto count = [&](const char* state) {
      return std::to_string(std::ranges::count(lease.tokens, std::string(state), &LeasedToken::state));
    };
    receipt = {lease.batch,       std::to_string(lease.attempt), count("due"), count("expired"),
               count("consumed"), count("wrong status"),         "0",          ids_text(skipped),
               std::nullopt};
    if (actor.script->delivers) receipt.back() = outcomes_of(actor, lease);
  }
  SteppingSession::Values values{
      std::to_string(session.pid()),      queue,       std::to_string(limit), "t", "t", "f",
      actor.script->delivers ? "t" : "f", std::nullopt};
  values.insert(values.end(), receipt.begin(), receipt.end());
  values.insert(values.end(), {std::nullopt, std::nullopt});
  values.push_back(held ? std::optional(history_.leases[*held].batch) : std::nullopt);
  session.send_prepared("claim", values);
}

void OrderPlayer::read_claim(Actor& actor, const StepEvent& event) {
  const auto& answer = event.answer;
  if (!answer.error.empty() || answer.rows.empty()) {
    trace(actor, event.step->name + " -> " + answer.error);
    return;
  }
  const auto& first = answer.rows.front();
  actor.unflushed = first.at("unflushed");
  const auto name = (event.began + 1 < event.ended ? "... " : "") + event.step->name;
  std::string said = name + " ->";
  if (actor.receipt) {
    auto& lease = history_.leases[*actor.receipt];
    lease.is_acknowledged = first.at("acknowledged") == "t";
    said +=
        fmt::format(" batch {} {},", lease.batch, lease.is_acknowledged ? "acknowledged" : "was taken over");
    actor.deferred.insert(lease.deferred.begin(), lease.deferred.end());
    std::erase(actor.leases, *actor.receipt);
  }
  if (!first.at("batch")) {
    trace(actor, said + " nothing");
    return;
  }
  LeaseRecord lease{.session = actor.number,
                    .queue = event.step->queue,
                    .batch = *first.at("batch"),
                    .attempt = std::stoi(*first.at("attempt")),
                    .began = event.began};
  said += fmt::format(" batch {}{}:", lease.batch,
                      lease.attempt == 1 ? "" : fmt::format(", attempt {}", lease.attempt));
  for (const auto& row : answer.rows) {
    if (!row.at("id")) continue;
    const auto email = row.at("email").value_or("");
    lease.tokens.push_back({std::stoll(*row.at("id")), email.substr(0, email.find('@')), *row.at("state")});
    said += " " + lease.tokens.back().name +
            (lease.tokens.back().state == "due" ? "" : " (" + *row.at("state") + ")");
  }
  trace(actor, said);
  actor.unsure_leases.push_back(history_.leases.size());
  history_.leases.push_back(std::move(lease));
}

void OrderPlayer::wait_for(Actor& actor) {
  settle();
  if (actor.event) throw std::runtime_error("what is left waits for a session that has ended its script");
}

bool OrderPlayer::claim_rest(Actor& actor, const std::string& queue, int limit) {
  rest_step_.queue = queue;
  rest_step_.limit = limit;
  // Each event needs a step of its own.
  actor.event = history_.events.size();
  history_.events.push_back({.session = actor.number, .step = &rest_step_, .began = history_.now++});
  send_claim(actor, queue, limit, false);
  wait_for(actor);
  const auto& answer = history_.events.back().answer;
  if (!answer.error.empty()) throw std::runtime_error("what is left cannot be claimed: " + answer.error);
  return answer.rows.front().at("batch").has_value() || answer.rows.front().at("more") == "t";
}

bool OrderPlayer::is_woken(const Scenario& scenario) {
  if (!scenario.woken) return true;
  auto& session = *sessions_[*scenario.woken];
  const bool was_notified = session.take_notifications();
  // It may still keep inserts from notifying.
  session.run("SELECT pg_advisory_unlock_all()");
  detached_.insert(*scenario.woken);
  const auto asked = std::ranges::find_if(history_.events.rbegin(), history_.events.rend(),
                                          [](const auto& event) { return event.step->means == Means::asks; });
  return was_notified || (asked != history_.events.rend() && asked->answer.value() != "{}");
}

void OrderPlayer::take_rest(const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.scripts.size(); ++i) {
    auto& actor = actors_[i];
    if (actor.is_gone || actor.is_lost) continue;
    while (!actor.leases.empty())
      claim_rest(actor, history_.leases[actor.leases.front()].queue, 0);
  }
  for (const auto& sql : scenario.cleanup)
    controller_->run(sql);
  auto& rest = actors_.back();
  auto* releaser = sessions_.back().get();
  if (scenario.released_by && !actors_[*scenario.released_by].is_gone)
    releaser = sessions_[*scenario.released_by].get();
  while (releaser->run("SELECT released FROM mailroom_release(1000)").value() != "0") {
  }
  if (!is_woken(scenario)) return;
  for (const auto& queue : scenario.queues) {
    int claims = 0;
    while (claim_rest(rest, queue, 10)) {
      if (++claims > most_claims) throw std::runtime_error("queue " + queue + " does not get empty");
    }
  }
}

}  // namespace mailroom::test
