// Faults of a relay: down, slow, late, gone.

#include <fmt/format.h>

#include "fault/send_trial.hpp"

namespace mailroom::test {
namespace {

using Then = RelayAnswer::Then;

RelayAnswer shutting_down(const RelayMoment& moment) {
  const bool begins = moment.step == RelayStep::greeting || moment.step == RelayStep::mail;
  return begins ? RelayAnswer::reply("421 4.3.2 shutting down", Then::close) : RelayAnswer{};
}

/// The relay takes no mail for a while.
Outcome relay_down(Cluster& cluster, const Plan& plan) {
  std::atomic<bool> down = false;
  const auto play = [&](const RelayMoment& moment) { return down ? shutting_down(moment) : RelayAnswer{}; };
  SendTrial trial(cluster, plan, {.senders = 3, .relay = {.play = play}});
  trial.allow_no_other_attempt();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(300, 600);
    down = true;
    trial.pause(2000, 6000);
    down = false;
  }
  return trial.finish(plan.rounds);
}

/// How many tokens have expired, or will when a sender asks for them, because the relay was down.
struct Expired {
  int before_a_claim = 0;
  int after_it = 0;
};

Expired count_expired(db::Connection& connection) {
  const auto row = connection.run(R"(
WITH late AS (SELECT id FROM tokens WHERE expires_at <= extract(epoch FROM clock_timestamp()))
SELECT (SELECT coalesce(sum(skipped_expired), 0) FROM mailroom_batches)
       + (SELECT count(*) FROM late WHERE id > (SELECT cursor FROM mailroom_queue_state('mailroom'))),
       (SELECT count(*) FROM mailroom_deliveries
        WHERE state = 'expired' OR (state = 'deferred' AND token IN (SELECT id FROM late))))")[0];
  return {row[0].as<int>(), row[1].as<int>()};
}

/// The relay is down until some of a third of the tokens, which live for 2 s, have expired. Another third
/// comes too near to its end while it waits: what would be tried again less than a minute before it expires
/// is not.
Outcome tokens_expire(Cluster& cluster, const Plan& plan) {
  std::atomic<bool> down = false;
  const auto play = [&](const RelayMoment& moment) { return down ? shutting_down(moment) : RelayAnswer{}; };
  SendTrial trial(cluster, plan, {.senders = 3, .writers = 3, .relay = {.play = play}});
  const auto connection = trial.connect();
  connection->run(
      "ALTER TABLE tokens ALTER expires_at SET DEFAULT floor(extract(epoch FROM now())) "
      "+ (ARRAY[2, 62, 900])[1 + floor(random() * 3)::integer]");
  for (int round = 0; round < plan.rounds; ++round) {
    trial.expect(trial.delivers_again(), "delivery resumes");
    const auto before = count_expired(*connection);
    down = true;
    const auto have_expired = [&] {
      const auto now = count_expired(*connection);
      return now.before_a_claim > before.before_a_claim && now.after_it > before.after_it;
    };
    trial.expect(eventually(have_expired, std::chrono::seconds(120)),
                 "tokens expire before their claim, and after it");
    down = false;
  }
  auto outcome = trial.finish(plan.rounds);
  const auto forgotten = value<int>(*connection, R"(
SELECT count(*) FROM tokens t LEFT JOIN mailroom_deliveries d ON d.token = t.id
WHERE t.expires_at - t.created_at = 900 AND d.state IS DISTINCT FROM 'accepted')");
  if (forgotten > 0)
    outcome.problems.push_back(
        fmt::format("not so: what lives long enough is mailed ({} are not)", forgotten));
  const auto expired = count_expired(*connection);
  outcome.notes.push_back(fmt::format("{} tokens were skipped by their claim or after it, {} mails expired",
                                      expired.before_a_claim, expired.after_it));
  return outcome;
}

/// A mail takes longer than the time-out for a reply. At full length a batch takes more than the ten seconds
/// after which another sender would take it over if the session had ended.
Outcome slow_relay(Cluster& cluster, const Plan& plan) {
  constexpr int senders = 4;
  const int limit = plan.shortened ? 20 : 60;
  const auto play = [](const RelayMoment& moment) {
    return RelayAnswer{.delay = Milliseconds(moment.step == RelayStep::body ? 0 : 1000)};
  };
  SendTrial trial(cluster, plan,
                  {.senders = senders,
                   .writers = 0,
                   .limit = limit,
                   .relay = {.play = play},
                   .environment = {{"MAILROOM_SEND_CONNECTIONS", "20"}, {"MAILROOM_SEND_TIMEOUT", "3s"}}});
  trial.allow_no_other_attempt();
  const auto connection = trial.connect();
  for (int round = 1; round <= plan.rounds; ++round) {
    insert_accounts(*connection, senders * limit, fmt::format("round{}-", round));
    const auto all = static_cast<std::size_t>(round * senders * limit);
    trial.expect(eventually([&] { return trial.taken().size() >= all; }, std::chrono::seconds(120)),
                 "the relay gets every mail");
  }
  return trial.finish(plan.rounds);
}

/// Some replies to RCPT come when the time-out has passed, and some mails get a second reply. Taken for a
/// reply to the next mail, each would make that one a dead letter.
Outcome stray_replies(Cluster& cluster, const Plan& plan) {
  std::mutex mutex;
  std::set<std::string> late;
  std::set<std::string> doubled;
  const auto play = [&](const RelayMoment& moment) -> RelayAnswer {
    const std::lock_guard lock(mutex);
    if (is_chosen(moment, RelayStep::rcpt, 20) && late.insert(moment.recipient).second)
      return {.text = "550 5.1.1 unknown", .is_late = true};
    if (is_chosen(moment, RelayStep::end, 11) && doubled.insert(moment.recipient).second)
      return RelayAnswer::reply("250 2.0.0 ok\r\n554 5.7.1 refused");
    return {};
  };
  SendTrial trial(
      cluster, plan,
      {.senders = 3,
       .writers = 2,
       .relay = {.play = play},
       // A reply is late when the sender has sent something else, which a pipelining one has at once.
       .pipelining = false,
       .environment = {{"MAILROOM_SEND_TIMEOUT", "1s"}}});
  trial.allow_no_other_attempt();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(500, 500);
    trial.expect(trial.delivers_again(), "delivery goes on");
  }
  // A busy machine writes few tokens in the time of the rounds.
  const auto has_both = [&] {
    const std::lock_guard lock(mutex);
    return !late.empty() && !doubled.empty();
  };
  trial.expect(eventually(has_both), "some replies are late, some doubled");
  return trial.finish(plan.rounds);
}

/// The first replies to the end of a mail come after the time-out, which is two minutes there, or never. Some
/// recipients are refused in time.
class LateEnds {
 public:
  RelayAnswer answer(const RelayMoment& moment) {
    const std::lock_guard lock(mutex_);
    if (moment.step != RelayStep::end) return {};
    if (is_chosen(moment, RelayStep::end, 10)) {
      refused_.insert(moment.recipient);
      return RelayAnswer::reply("554 5.7.1 refused");
    }
    const auto now = std::chrono::steady_clock::now();
    if (count_ == 0) first_ = now;
    // Those that begin after the first time-out would make the fault take twice as long.
    const bool is_late = count_ < 9 && now - first_ < std::chrono::minutes(1);
    return is_late ? late(count_++ % 3) : RelayAnswer{};
  }
  /// How many mails were taken without an answer in time.
  std::size_t taken() const { return static_cast<std::size_t>(count_ - count_ / 3); }
  bool is_refused(const std::string& recipient) const { return refused_.count(recipient) > 0; }

 private:
  static RelayAnswer late(int kind) {
    if (kind == 0) return RelayAnswer::nothing(Then::hang);
    if (kind == 1) return {.is_late = true};
    return {.text = "554 5.7.1 late", .is_late = true};
  }

  std::mutex mutex_;
  int count_ = 0;
  TimePoint first_{};
  std::set<std::string> refused_;
};

Outcome late_ends(Cluster& cluster, const Plan& plan) {
  LateEnds ends;
  const auto play = [&](const RelayMoment& moment) { return ends.answer(moment); };
  SendTrial trial(
      cluster, plan,
      {.senders = 3, .limit = 10, .relay = {.play = play}, .patience = std::chrono::seconds(400)});
  trial.allow_repeats(6);
  trial.pause(500, 500);
  auto outcome = trial.finish(plan.rounds);
  if (outcome.tally.repeated != ends.taken())
    outcome.problems.push_back("not so: each mail that was taken without an answer is repeated once");
  for (const auto& row : trial.connect()->run(R"(
SELECT a.email FROM mailroom_deliveries d JOIN tokens t ON t.id = d.token JOIN accounts a ON a.id = t.account
WHERE d.state = 'rejected')")) {
    if (!ends.is_refused(row[0].as<std::string>()))
      outcome.problems.push_back("not so: only refused mails are rejected");
  }
  return outcome;
}

/// The first of two relays dies between and within mails, and returns.
Outcome first_relay_dies(Cluster& cluster, const Plan& plan) {
  std::atomic<bool> dead = false;
  TestRelay first({.play = [&](const RelayMoment& moment) {
    return dead && moment.step < RelayStep::body ? RelayAnswer::nothing(Then::reset) : RelayAnswer{};
  }});
  SendTrial trial(cluster, plan, {.senders = 3, .writers = 3, .first_relay = &first});
  trial.allow_no_other_attempt();
  const auto takes_more = [](const TestRelay& relay) {
    const auto before = relay.taken().size();
    return eventually([&] { return relay.taken().size() > before; }, std::chrono::seconds(30));
  };
  for (int round = 0; round < plan.rounds; ++round) {
    trial.expect(takes_more(first), "the first relay takes mails while it lives");
    dead = true;
    trial.expect(takes_more(trial.relay()), "the second relay takes mails while the first is dead");
    trial.pause(500, 1500);
    dead = false;
  }
  trial.expect(takes_more(first), "the first relay takes mails when it is back");
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> relay_faults() {
  return {{"send: relay unavailable", "no attempt is counted, nothing repeated", 6, 1, relay_down},
          {"send: relay down until tokens expire",
           "each such token is recorded as expired, the others are mailed", 3, 1, tokens_expire},
          {"send: one reply a second", "nothing repeated, no attempt fails", 4, 1, slow_relay},
          {"send: late and doubled replies", "none is taken for another mail's, nothing repeated", 20, 1,
           stray_replies},
          {"send: late or no replies to the end", "what was taken is repeated once, the rest exactly once", 1,
           0, late_ends},
          {"send: the first of two relays dies", "the second takes all meanwhile, nothing repeated", 10, 1,
           first_relay_dies}};
}

}  // namespace mailroom::test
