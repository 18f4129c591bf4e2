// Every line is a message of its own, whose id is the same at each attempt. A session lock names the reader.
// Rows are read by their id, and whatever commits late is simply there later: no cursor can pass it.

#include "feed/outcome_feed.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "db/values.hpp"

namespace mailroom::feed {
namespace {

constexpr std::chrono::minutes longest_answer{10};  ///< longer than any answer may take
/// The queue of a line about a message that had none yet, for whoever routes by it.
constexpr auto queue_without_token = "mailroom";

std::string queue_of(const KeptOutcome& outcome) {
  return outcome.queue.empty() ? queue_without_token : outcome.queue;
}

}  // namespace

KeptOutcomes::KeptOutcomes(db::Connection& connection) : connection_(connection) {
  connection_.run("SELECT mailroom_want_outcomes(true)");
}

bool KeptOutcomes::take_over() {
  return connection_.run("SELECT pg_try_advisory_lock(mailroom_lock_class('outcomes'), 0)").value<bool>();
}

std::vector<KeptOutcome> KeptOutcomes::due(int limit, bool as_events) {
  constexpr auto events = R"(
SELECT o.id, o.token, o.queue, o.state, o.attempts, coalesce(mailroom_outcome_event(o.id)::text, '') AS line
FROM mailroom_outcomes o WHERE o.not_before IS NULL OR o.not_before <= clock_timestamp() ORDER BY o.id LIMIT $1)";
  constexpr auto lines = R"(
SELECT o.id, o.token, o.queue, o.state, o.attempts, jsonb_strip_nulls(jsonb_build_object(
  'id', o.id, 'at', to_char(o.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'state', o.state, 'queue', o.queue, 'token', o.token,
  'action', coalesce(t.action::text, m.action), 'message', m.id, 'account', coalesce(t.account, m.account), 'recipient', coalesce(
    o.address, nullif(mailroom_address((m.recipients || m.cc || m.bcc)[coalesce(t.recipient, o.recipient)]), ''), a.email),
  'reference', m.reference, 'idempotency_key', m.idempotency_key, 'code', o.code, 'reply', o.reply, 'topic', o.topic,
  'message_id', d.message_id)) AS line
FROM mailroom_outcomes o LEFT JOIN tokens t ON t.id = o.token LEFT JOIN mailroom_messages m ON m.id = coalesce(t.message, o.message)
LEFT JOIN mailroom_deliveries d ON d.queue = o.queue AND d.token = o.token
LEFT JOIN accounts a ON a.id = coalesce(t.account, CASE WHEN o.recipient IS NULL THEN m.account END)
WHERE o.not_before IS NULL OR o.not_before <= clock_timestamp() ORDER BY o.id LIMIT $1)";
  std::vector<KeptOutcome> outcomes;
  for (const auto& row : connection_.run(as_events ? events : lines, limit)) {
    outcomes.push_back({.id = row.number("id"),
                        .token = row.optional<std::int64_t>("token").value_or(0),
                        .queue = row.text("queue"),
                        .state = row.text("state"),
                        .attempts = row.number<int>("attempts"),
                        .line = row.text("line")});
  }
  return outcomes;
}

void KeptOutcomes::remove(const std::vector<std::int64_t>& ids) {
  std::vector<std::string> texts;
  for (const auto id : ids)
    texts.push_back(std::to_string(id));
  connection_.run("DELETE FROM mailroom_outcomes WHERE id = ANY ($1::bigint[])", db::array_text(texts));
}

void KeptOutcomes::put_off(std::int64_t id, Milliseconds wait, bool counts) {
  connection_.run(
      "UPDATE mailroom_outcomes SET not_before = clock_timestamp() + $2::bigint * interval '1 ms', attempts = attempts + $3::int "
      "WHERE id = $1",
      id, wait.count(), counts ? 1 : 0);
}

std::int64_t KeptOutcomes::end(db::Connection& connection) {
  return connection.run("SELECT mailroom_want_outcomes(false)").value<std::int64_t>();
}

Milliseconds pause_of_outcome(int attempts) {
  constexpr std::array<int, 5> pauses{15, 30, 60, 120, 240};
  return std::chrono::seconds(
      pauses.at(static_cast<std::size_t>(std::clamp(attempts, 0, static_cast<int>(pauses.size()) - 1))));
}

OutcomeForm outcome_lines() {
  return {.tell = [](const KeptOutcome& outcome) -> std::optional<ToldOutcome> {
    if (outcome.state == "deferred") return std::nullopt;
    return ToldOutcome{fmt::format("{}.outcome.{}", queue_of(outcome), outcome.id), outcome.line};
  }};
}

OutcomeFeed::OutcomeFeed(std::unique_ptr<delivery::Carrier> carrier,
                         const delivery::Dispatcher::Options& options, OutcomeForm form, Log& log)
    : in_flight_(options.in_flight),
      form_(std::move(form)),
      dispatcher_(std::move(carrier), options),
      log_(log) {}

/// Returns those of which nobody is told.
std::vector<std::int64_t> OutcomeFeed::submit(const std::vector<KeptOutcome>& outcomes) {
  std::vector<std::int64_t> untold;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto& outcome = outcomes[i];
    auto told = form_.tell(outcome);
    if (!told) {
      untold.push_back(outcome.id);
      continue;
    }
    dispatcher_.submit(
        {.id = static_cast<std::int64_t>(i),
         .queue = queue_of(outcome),
         .batch = outcome.id,
         .attempt = outcome.attempts + 1,
         .line = 1,
         .action = "outcome",
         .tokens = outcome.token == 0 ? std::vector<std::int64_t>() : std::vector{outcome.token},
         .message_id = std::move(told->id)},
        SpooledText(std::move(told->body)));
  }
  return untold;
}

int OutcomeFeed::round(KeptOutcomes& kept) {
  const auto outcomes = kept.due(in_flight_, form_.is_event);
  if (outcomes.empty()) return 0;
  const auto untold = submit(outcomes);
  if (!untold.empty()) kept.remove(untold);
  if (untold.size() == outcomes.size()) return static_cast<int>(untold.size());
  if (!dispatcher_.wait(steady_now() + longest_answer)) dispatcher_.cancel();
  auto answers = dispatcher_.take();
  const auto taken = std::ranges::count_if(answers, [](const auto& dispatched) {
    return dispatched.is_final && dispatched.answer.verdict == delivery::Verdict::accepted;
  });
  record(kept, outcomes, answers);
  return static_cast<int>(taken) + static_cast<int>(untold.size());
}

void OutcomeFeed::record(KeptOutcomes& kept, const std::vector<KeptOutcome>& outcomes,
                         const std::vector<delivery::Dispatched>& answers) {
  std::vector<std::int64_t> done;
  for (const auto& dispatched : answers) {
    if (!dispatched.is_final) continue;
    const auto& outcome = outcomes.at(static_cast<std::size_t>(dispatched.answer.id));
    if (is_done(kept, outcome, dispatched.answer)) done.push_back(outcome.id);
  }
  if (!done.empty()) kept.remove(done);
}

/// False: it comes again.
bool OutcomeFeed::is_done(KeptOutcomes& kept, const KeptOutcome& outcome, const delivery::Answer& answer) {
  auto verdict = answer.verdict;
  if (form_.drops_refused) {
    // The program may name the token, as it does for a line of collect.
    for (const auto& named : answer.tokens)
      if (named.token == outcome.token) verdict = named.verdict;
  }
  if (verdict == delivery::Verdict::accepted) return true;
  if (verdict == delivery::Verdict::rejected) {
    const auto reply = printable(answer.reply);
    if (form_.drops_refused) {
      log_.warn("an outcome was refused for good, and is dropped",
                {{"token", outcome.token}, {"state", outcome.state}, {"reply", reply}});
      return true;
    }
    if (outcome.attempts == 0)
      log_.warn("an outcome was refused, and comes again",
                {{"token", outcome.token}, {"state", outcome.state}, {"reply", reply}});
  }
  if (verdict == delivery::Verdict::unavailable || answer.is_excused) {
    kept.put_off(outcome.id, answer.wait.value_or(std::chrono::seconds(1)), false);
  } else {
    kept.put_off(outcome.id,
                 std::max(pause_of_outcome(outcome.attempts), answer.wait.value_or(Milliseconds(0))), true);
  }
  return false;
}

}  // namespace mailroom::feed
