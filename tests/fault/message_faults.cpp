// Messages that are cancelled, or committed, at the worst moment.

#include <fmt/format.h>

#include "fault/send_trial.hpp"

namespace mailroom::test {
namespace {

/// The transaction stays open until then: what waits for it never comes. Behind a backlog it may take a
/// while.
constexpr std::chrono::minutes longest_open{5};

constexpr int messages_a_round = 12;

std::string address(int round, int number) {
  return fmt::format("held{}-{}@test.example", round, number);
}

/// Asks for a few messages; returns the id of the first.
std::int64_t ask_for_some(db::Connection& connection, int round) {
  std::int64_t first = 0;
  for (int number = 0; number < messages_a_round; ++number) {
    const auto id = connection
                        .run("SELECT mailroom_send(ARRAY[$1], subject => 'held', text => 'held')",
                             address(round, number))[0][0]
                        .as<std::int64_t>();
    if (number == 0) first = id;
  }
  return first;
}

/// Cancels every second of the messages from `first` on; returns how often it was said that no mail will
/// leave.
int cancel_some(db::Connection& connection, std::int64_t first) {
  return connection
      .run(R"(
SELECT count(*) FILTER (WHERE mailroom_cancel(m.id) = 'cancelled')
FROM (SELECT id FROM mailroom_messages WHERE id >= $1 AND subject = 'held' AND (id - $1) % 2 = 0 ORDER BY id) m)",
           first)[0][0]
      .as<int>();
}

std::set<std::string> mailed(const SendTrial& trial) {
  std::set<std::string> addresses;
  for (const auto& mail : trial.taken())
    addresses.insert(mail.to);
  return addresses;
}

/// Adds to `outcome` what became of the messages of a round: every second was cancelled, unless that was
/// rolled back.
void judge_round(Outcome& outcome, const std::set<std::string>& mailed, int round, bool is_cancelled) {
  std::size_t revoked = 0;
  std::size_t lost = 0;
  for (int number = 0; number < messages_a_round; ++number) {
    const bool is_mailed = mailed.count(address(round, number)) > 0;
    const bool is_expected = number % 2 == 1 || !is_cancelled;
    revoked += is_mailed && !is_expected ? 1 : 0;
    lost += !is_mailed && is_expected ? 1 : 0;
  }
  outcome.tally.lost += lost;
  outcome.tally.strange += revoked;
  if (lost > 0) outcome.problems.push_back(fmt::format("not so: every message is sent ({} are not)", lost));
  if (revoked > 0)
    outcome.problems.push_back(fmt::format("not so: no cancelled message is sent ({} are)", revoked));
}

bool is_rolled_back(int round) {
  return round % 3 == 2;
}

/// Messages wait in a paused queue; a transaction cancels some of them, and stays open while the queue goes
/// on.
Outcome cancel_while_claims_come(Cluster& cluster, const Plan& plan) {
  SendTrial trial(cluster, plan, {.senders = 2, .writers = 2});
  const auto operating = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    operating->run("SELECT mailroom_pause_queue('mailroom', true, 'token_insert')");
    const auto first = ask_for_some(*operating, round);
    const auto cancelling = trial.connect();
    cancelling->run("BEGIN");
    const int said = cancel_some(*cancelling, first);
    trial.expect(said == messages_a_round / 2, fmt::format("what waits is cancelled ({} are)", said));
    operating->run("SELECT mailroom_pause_queue('mailroom', false, 'token_insert')");
    const auto others_are_mailed = [&] {
      return mailed(trial).count(address(round, messages_a_round - 1)) > 0;
    };
    trial.expect(eventually(others_are_mailed, longest_open), "the others do not wait for the transaction");
    trial.pause(100, 300);
    cancelling->run(is_rolled_back(round) ? "ROLLBACK" : "COMMIT");
  }
  auto outcome = trial.finish(plan.rounds);
  const auto addresses = mailed(trial);
  for (int round = 0; round < plan.rounds; ++round)
    judge_round(outcome, addresses, round, !is_rolled_back(round));
  return outcome;
}

std::string address_of(const std::string& name, int round) {
  return fmt::format("{}{}@test.example", name, round);
}

void ask_for_later(db::Connection& connection, const std::string& address, int in_ms) {
  connection.run(
      "SELECT mailroom_send(ARRAY[$1], subject => 'later', text => 'later', "
      "send_after => clock_timestamp() + $2::int * interval '1 ms')",
      address, in_ms);
}

/// A message is committed after its time, when one of a later time has left.
Outcome commit_after_its_time(Cluster& cluster, const Plan& plan) {
  SendTrial trial(cluster, plan, {.senders = 1, .writers = 2});
  const auto prompt = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    const auto late = trial.connect();
    late->run("BEGIN");
    ask_for_later(*late, address_of("late", round), 100);
    ask_for_later(*prompt, address_of("prompt", round), 200);
    const auto has_left = [&] { return mailed(trial).count(address_of("prompt", round)) > 0; };
    trial.expect(eventually(has_left, longest_open), "a message does not wait for another");
    late->run("COMMIT");
  }
  auto outcome = trial.finish(plan.rounds);
  const auto addresses = mailed(trial);
  std::size_t forgotten = 0;
  for (int round = 0; round < plan.rounds; ++round)
    forgotten += addresses.count(address_of("late", round)) == 0 ? 1 : 0;
  outcome.tally.lost += forgotten;
  if (forgotten > 0)
    outcome.problems.push_back(fmt::format("not so: every message is sent ({} are not)", forgotten));
  return outcome;
}

}  // namespace

std::vector<Fault> message_faults() {
  return {{"messages: cancelled while a claim comes", "none that is cancelled is sent, all others are", 30, 4,
           cancel_while_claims_come},
          {"messages: committed after their time", "each is sent", 20, 2, commit_after_its_time}};
}

}  // namespace mailroom::test
