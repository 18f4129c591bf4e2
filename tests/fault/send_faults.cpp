// Faults of `mailroom send`: of its process, its database, and its relay's answers.

#include <csignal>

#include "fault/send_trial.hpp"

namespace mailroom::test {
namespace {

/// Who writes while a fault is played.
struct Load {
  int writers;
  int producers;  ///< of messages
};

Outcome senders_alone(Cluster& cluster, const Plan& plan, Load load) {
  SendTrial trial(cluster, plan, {.senders = 4, .writers = load.writers, .producers = load.producers});
  for (int round = 0; round < plan.rounds; ++round)
    trial.pause(500, 500);
  return trial.finish(plan.rounds);
}

Outcome kill_senders(Cluster& cluster, const Plan& plan, Load load) {
  SendTrial trial(cluster, plan, {.senders = 4, .writers = load.writers, .producers = load.producers});
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(20, 200);
    trial.replace(trial.draw(0, 3), SIGKILL);
    trial.allow_repeats(trial.limit());
  }
  return trial.finish(plan.rounds);
}

Outcome stop_senders(Cluster& cluster, const Plan& plan, Load load) {
  SendTrial trial(cluster, plan, {.senders = 3, .writers = load.writers, .producers = load.producers});
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(20, 150);
    const int index = trial.draw(0, 2);
    trial.expect(trial.consumer(index).connected(), "a sender connects");
    const int status = trial.replace(index, SIGTERM);
    trial.expect(status == 0, "a sender that is asked to stop ends with 0 (" + std::to_string(status) + ")");
  }
  return trial.finish(plan.rounds);
}

Outcome stop_while_relay_hangs(Cluster& cluster, const Plan& plan) {
  std::atomic<bool> hangs = false;
  const auto play = [&](const RelayMoment& moment) {
    return hangs && moment.step == RelayStep::rcpt ? RelayAnswer::nothing(RelayAnswer::Then::hang)
                                                   : RelayAnswer{};
  };
  SendTrial trial(cluster, plan, {.senders = 2, .relay = {.play = play}});
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(300, 500);
    hangs = true;
    trial.pause(200, 400);
    for (int index = 0; index < 2; ++index) {
      trial.expect(trial.consumer(index).connected(), "a sender connects");
      trial.expect(trial.replace(index, SIGTERM) == 0, "a sender whose relay hangs ends with 0");
    }
    hangs = false;
  }
  return trial.finish(plan.rounds);
}

/// A tenth of the recipients is deferred at first, a tenth rejected, and one connection in forty ends after a
/// mail.
Outcome mixed_answers(Cluster& cluster, const Plan& plan, Load load) {
  std::mutex mutex;
  std::set<std::string> deferred;
  const auto play = [&](const RelayMoment& moment) {
    const std::lock_guard lock(mutex);
    if (is_chosen(moment, RelayStep::rcpt, 10) && deferred.insert(moment.recipient).second)
      return RelayAnswer::reply("451 4.7.1 try later");
    if (is_chosen(moment, RelayStep::rcpt, 11)) return RelayAnswer::reply("550 5.1.1 unknown");
    if (moment.step == RelayStep::mail && moment.mail % 40 == 39)
      return RelayAnswer::reply("421 4.7.0 enough mails", RelayAnswer::Then::close);
    return RelayAnswer{};
  };
  SendTrial trial(
      cluster, plan,
      {.senders = 3, .writers = load.writers, .producers = load.producers, .relay = {.play = play}});
  for (int round = 0; round < plan.rounds; ++round)
    trial.pause(500, 500);
  return trial.finish(plan.rounds);
}

/// The answer to some mails is lost: each is sent once more.
Outcome lost_answers(Cluster& cluster, const Plan& plan) {
  std::mutex mutex;
  std::set<std::string> lost;
  const auto play = [&](const RelayMoment& moment) {
    const std::lock_guard lock(mutex);
    if (is_chosen(moment, RelayStep::end, 20) && lost.insert(moment.recipient).second)
      return RelayAnswer::nothing(RelayAnswer::Then::close);
    return RelayAnswer{};
  };
  SendTrial trial(cluster, plan, {.senders = 3, .relay = {.play = play}});
  for (int round = 0; round < plan.rounds; ++round)
    trial.pause(500, 500);
  trial.allow_repeats(1 << 20);
  auto outcome = trial.finish(plan.rounds);
  if (outcome.tally.repeated > lost.size())
    outcome.problems.push_back("not so: only mails without an answer are repeated");
  return outcome;
}

/// The sessions with the database end while mails are in flight.
Outcome sessions_end(Cluster& cluster, const Plan& plan, Load load) {
  SendTrial trial(cluster, plan, {.senders = 3, .writers = load.writers, .producers = load.producers});
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(50, 250);
    const auto ended = connection->run(R"(
SELECT count(pg_terminate_backend(pid)) FROM (
  SELECT pid FROM pg_stat_activity
  WHERE application_name LIKE 'mailroom send%' AND datname = current_database() ORDER BY random() LIMIT 1) one)");
    trial.allow_repeats(trial.limit() * ended[0][0].as<int>());
  }
  return trial.finish(plan.rounds);
}

/// The server crashes while mails are in flight. All sessions end at once, so the senders wait for each
/// other's outcomes.
Outcome server_crashes(Cluster& cluster, const Plan& plan, Load load) {
  // Slow enough that most crashes come while mails are on their way.
  const auto play = TestRelay::at(RelayStep::end, RelayAnswer{.delay = Milliseconds(20)});
  SendTrial trial(
      cluster, plan,
      {.senders = 3, .writers = load.writers, .producers = load.producers, .relay = {.play = play}});
  trial.allow_no_other_attempt();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(300, 1200);
    cluster.stop("immediate");
    trial.pause(0, 300);
    cluster.start();
    trial.expect(trial.delivers_again(), "delivery resumes");
  }
  return trial.finish(plan.rounds);
}

/// Senders are killed while their relay takes connections and says nothing: none has tried a mail. Whatever
/// `when_unknown` is, each is mailed once.
Outcome kill_before_greeting(Cluster& cluster, const Plan& plan, const std::string& when_unknown) {
  constexpr int senders = 2;
  constexpr int kills = 3;
  constexpr int mails = 30;
  std::atomic<bool> is_silent = false;
  const auto play = [&](const RelayMoment& moment) {
    return is_silent && moment.step == RelayStep::greeting ? RelayAnswer::nothing(RelayAnswer::Then::hang)
                                                           : RelayAnswer{};
  };
  SendTrial trial(cluster, plan,
                  {.senders = senders,
                   .writers = 0,
                   .relay = {.play = play},
                   .environment = {{"MAILROOM_SEND_WHEN_UNKNOWN", when_unknown}}});
  trial.allow_no_other_attempt();
  const auto connection = trial.connect();
  for (int round = 1; round <= plan.rounds; ++round) {
    is_silent = true;
    for (int kill = 0; kill <= kills; ++kill) {
      for (int index = 0; index < senders; ++index) {
        trial.expect(trial.consumer(index).connected(), "a sender connects");
        trial.replace(index, SIGKILL);
      }
      if (kill == 0) insert_accounts(*connection, mails, "round" + std::to_string(round) + "-");
      trial.pause(500, 800);
    }
    is_silent = false;
    const auto all = static_cast<std::size_t>(round * mails);
    // The last connection to the silent relay lasts for the time-out.
    for (int index = 0; index < senders; ++index)
      trial.replace(index, SIGKILL);
    trial.expect(eventually([&] { return trial.taken().size() >= all; }, std::chrono::seconds(60)),
                 "the relay gets every mail");
  }
  return trial.finish(plan.rounds);
}

/// The server crashes while some mails wait for their answer for longer than the others need to reconnect.
Outcome server_crashes_behind_slow_mails(Cluster& cluster, const Plan& plan) {
  const auto play = [](const RelayMoment& moment) {
    return RelayAnswer{.delay = Milliseconds(is_chosen(moment, RelayStep::end, 8) ? 6000 : 0)};
  };
  SendTrial trial(cluster, plan, {.senders = 3, .writers = 2, .relay = {.play = play}});
  trial.allow_no_other_attempt();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(1000, 2000);
    cluster.stop(round % 2 == 0 ? "immediate" : "fast");
    cluster.start();
    trial.pause(3000, 4000);
    trial.expect(trial.delivers_again(), "delivery resumes");
  }
  return trial.finish(plan.rounds);
}

using Play = Outcome (*)(Cluster&, const Plan&, Load);

std::function<Outcome(Cluster&, const Plan&)> with_tokens(Play play) {
  return [play](Cluster& cluster, const Plan& plan) {
    return play(cluster, plan, {.writers = 6, .producers = 0});
  };
}

std::function<Outcome(Cluster&, const Plan&)> with_messages(Play play) {
  return [play](Cluster& cluster, const Plan& plan) {
    return play(cluster, plan, {.writers = 2, .producers = 16});
  };
}

}  // namespace

std::vector<Fault> send_faults() {
  return {
      {"send: no fault, four senders", "nothing repeated", 20, 3, with_tokens(senders_alone)},
      {"send: kill -9 at random", "at most the batch limit per kill is repeated, same bytes", 200, 12,
       with_tokens(kill_senders)},
      {"send: SIGTERM", "each ends with 0, nothing repeated", 40, 4, with_tokens(stop_senders)},
      {"send: SIGTERM while the relay hangs", "each ends with 0, nothing repeated", 5, 1,
       stop_while_relay_hangs},
      {"send: 451, 550 and 421", "deferred mails are tried again, nothing repeated", 20, 3,
       with_tokens(mixed_answers)},
      {"send: lost answers", "each such mail is repeated once", 20, 3, lost_answers},
      {"send: database sessions end", "at most the batch limit per session is repeated", 60, 5,
       with_tokens(sessions_end)},
      {"send: stop -m immediate and start", "nothing repeated", 12, 1, with_tokens(server_crashes)},
      {"send: killed before the relay greets", "each mail is mailed once", 6, 1,
       [](Cluster& cluster, const Plan& plan) { return kill_before_greeting(cluster, plan, "resend"); }},
      {"send: the same, when_unknown: hold", "each mail is mailed once", 6, 1,
       [](Cluster& cluster, const Plan& plan) { return kill_before_greeting(cluster, plan, "hold"); }},
      {"send: restarts while answers are late", "nothing repeated", 8, 1, server_crashes_behind_slow_mails},
      {"messages: no fault", "each call and each key is one mail", 20, 3, with_messages(senders_alone), true},
      {"messages: kill -9 at random", "the same, the batch limit per kill is repeated", 200, 12,
       with_messages(kill_senders)},
      {"messages: SIGTERM", "each call and each key is one mail", 40, 0, with_messages(stop_senders)},
      {"messages: 451, 550 and 421", "the same, deferred mails are tried again", 20, 3,
       with_messages(mixed_answers)},
      {"messages: database sessions end", "the same, the batch limit per session is repeated", 60, 5,
       with_messages(sessions_end)},
      {"messages: stop -m immediate and start", "each call and each key is one mail", 12, 3,
       with_messages(server_crashes)}};
}

}  // namespace mailroom::test
