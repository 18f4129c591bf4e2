#include "fault/delivery_trial.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <set>

#include "fault/record_check.hpp"

namespace mailroom::test {

void DeliveryTrial::begin() {
  for (int i = 0; i < options_.consumers; ++i)
    consumers_.push_back(hire());
  for (const auto& each : consumers_) {
    if (!each->connected()) throw std::runtime_error("a consumer did not connect: " + each->log());
  }
  start_writers(conninfo(), options_.writers, {.tolerant = true, .pause_ms = 40});
  start_producers(options_.producers);
}

void DeliveryTrial::end() {
  end_writers();
  consumers_.clear();
}

int DeliveryTrial::replace(int index, int signal) {
  auto& place = consumers_.at(static_cast<std::size_t>(index));
  place->process().signal(signal);
  const int status = place->wait();
  logs_.push_back(place->log());
  place = hire();
  return status;
}

bool DeliveryTrial::drains() {
  const auto connection = connect();
  auto fewest = std::numeric_limits<std::int64_t>::max();
  bool is_over = false;
  const auto progresses = [&] {
    connection->run(
        "UPDATE mailroom_deliveries SET not_before = clock_timestamp() WHERE not_before > clock_timestamp()");
    is_over =
        is_drained(*connection) &&
        value<int>(*connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = 'deferred'") == 0;
    const auto left = value<std::int64_t>(*connection, R"(
SELECT count(*) FROM tokens t
WHERE NOT EXISTS (SELECT FROM mailroom_deliveries d WHERE d.token = t.id AND d.state <> 'deferred'))");
    const bool is_less = left < fewest;
    fewest = std::min(fewest, left);
    return is_over || is_less;
  };
  const auto patience = is_broken_ ? std::chrono::seconds(10) : options_.patience;
  // A server that has asked for a lower rate gets one, however long the backlog takes.
  while (!is_over) {
    if (!eventually(progresses, patience)) return false;
  }
  return true;
}

Outcome DeliveryTrial::finish(int rounds) {
  outcome_.rounds = rounds;
  end_writers();
  expect(drains(), "every token reaches a final state");
  for (const auto& each : consumers_) {
    expect(each->connected(), "a consumer connects");
    const int status = each->stop();
    expect(status == 0, fmt::format("a consumer ends with 0 ({})", status));
    logs_.push_back(each->log());
  }
  judge();
  note_logs(logs_);
  return outcome_;
}

void DeliveryTrial::judge() {
  const auto taken = judge_taken();
  const auto connection = connect();
  auto& tally = outcome_.tally;
  for (const auto& [token, times] : taken)
    tally.repeated += static_cast<std::size_t>(times - 1);
  tally.emitted = taken.size();
  judge_records(*connection, taken);
  account_for_tokens(*connection, outcome_);
  expect(tally.committed > 0, "something was committed");
  expect(tally.lost == 0, "every token is taken or has a final state");
  expect(tally.strange == 0, "nothing is taken that is not committed");
  expect(tally.repeated <= static_cast<std::size_t>(allowed_),
         fmt::format("at most {} are taken again", allowed_));
}

namespace {

/// Whether a token that nobody took may rest in that state. Nobody knows what became of one only after an
/// attempt without an answer, even if a later attempt was refused: and then the receiver has seen it.
bool is_final(const std::string& state, int unknowns, bool was_seen) {
  static const std::set<std::string> ends{"rejected", "expired", "cancelled"};
  return ends.contains(state) || (state == "unknown" && unknowns > 0 && was_seen);
}

}  // namespace

void DeliveryTrial::judge_records(db::Connection& connection, const std::map<std::int64_t, int>& taken) {
  auto& tally = outcome_.tally;
  int wrong = 0;
  int others = 0;
  std::int64_t expired = 0;  // before a claim could take them
  std::set<std::int64_t> known;
  for (const auto& row : connection.run(R"(
SELECT t.id, coalesce(d.state, ''), d.accepted_at IS NOT NULL, coalesce(d.attempts, 0),
       t.expires_at <= extract(epoch FROM clock_timestamp()),
       m.cancelled_at IS NOT NULL OR m.replaced_at IS NOT NULL, coalesce(d.unknowns, 0),
       coalesce(mailroom_address((m.recipients || m.cc || m.bcc)[t.recipient]), a.email, '')
FROM tokens t LEFT JOIN mailroom_deliveries d ON d.queue = 'mailroom' AND d.token = t.id
LEFT JOIN mailroom_messages m ON m.id = t.message LEFT JOIN accounts a ON a.id = t.account
WHERE t.expires_at > t.created_at)")) {
    const auto token = row[0].as<std::int64_t>();
    const bool was_taken = taken.count(token) > 0;
    const auto state = row[1].as<std::string>();
    known.insert(token);
    // Whether a message may be cancelled, judge_taken() knows.
    if (row[5].as<bool>() && !was_taken) continue;
    if (state.empty() && !was_taken && row[4].as<bool>()) {
      ++expired;
    } else if (!was_taken && !is_final(state, row[6].as<int>(), has_seen(row[7].as<std::string>()))) {
      ++tally.lost;
    }
    // What is recorded as accepted has been taken.
    if (row[2].as<bool>() && !was_taken) ++wrong;
    if (state != "accepted" || row[3].as<int>() != 1) ++others;
  }
  tally.committed = known.size();
  for (const auto& [token, times] : taken)
    tally.strange += known.count(token) == 0 ? 1 : 0;
  judge_expired(connection, expired);
  expect(wrong == 0, fmt::format("what is recorded as accepted has been taken ({} were not)", wrong));
  expect(others == 0 || !is_first_attempt_expected_,
         fmt::format("every token is accepted at its first attempt ({} are not)", others));
}

/// The claims have counted what expired before them. A batch also counts those of its tokens that have
/// expired when it is read.
void DeliveryTrial::judge_expired(db::Connection& connection, std::int64_t expired) {
  const auto counted = value<std::int64_t>(connection, R"(
SELECT coalesce(sum(skipped_expired), 0)
       - (SELECT count(*) FROM mailroom_deliveries WHERE state = 'expired' AND reply = 'the token has expired')
FROM mailroom_batches)");
  outcome_.tally.lost += static_cast<std::size_t>(std::max(expired - counted, std::int64_t{0}));
  expect(expired <= counted, fmt::format("{} expired tokens are counted ({} are)", expired, counted));
}

}  // namespace mailroom::test
