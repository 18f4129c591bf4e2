// Takes the steps of an order on the server: which go on, which wait, what each has answered.

#include "fault/order_player.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>
#include <thread>
#include <utility>

#include "support/subprocess.hpp"

namespace mailroom::test {
namespace {

/// How long a statement may take that waits for nobody.
constexpr std::chrono::seconds longest_step{60};

/// An empty database again, in the state in which a claim has the usual case; ids go on. As a superuser,
/// without triggers.
constexpr const char* begin_order_sql = R"(
CREATE OR REPLACE FUNCTION begin_order() RETURNS void LANGUAGE plpgsql SET session_replication_role = replica AS $$
DECLARE
    v_top bigint := (SELECT id FROM mailroom_last_drawn_token());
    v_queue text;
    v_id bigint;
BEGIN
    DELETE FROM tokens; DELETE FROM accounts; DELETE FROM mailroom_messages; DELETE FROM mailroom_schedule;
    DELETE FROM mailroom_batches; DELETE FROM mailroom_gaps; DELETE FROM mailroom_deliveries;
    DELETE FROM mailroom_bounces; DELETE FROM mailroom_suppressions; DELETE FROM mailroom_operations; DELETE FROM mailroom_outcomes;
    UPDATE mailroom_queues SET paused_at = NULL WHERE paused_at IS NOT NULL;
    UPDATE mailroom_budgets SET taken_until = '-infinity' WHERE taken_until <> '-infinity';
    FOR v_queue IN SELECT job_type FROM jobs LOOP
        v_id := nextval('mailroom_batches_id_seq');
        INSERT INTO mailroom_batches (id, queue, ids, collector, emitted_at, cursor, open_from, gap_ids)
        OVERRIDING SYSTEM VALUE VALUES (v_id, v_queue, '{}', 0, clock_timestamp(), v_top, v_id, '{}');
    END LOOP;
    UPDATE jobs SET last_seq = v_top WHERE last_seq IS DISTINCT FROM v_top;
END
$$)";

/// Without them, each order would leave rows that the next ones read over.
constexpr int orders_per_vacuum = 200;

}  // namespace

OrderPlayer::OrderPlayer(Cluster& cluster, std::string database)
    : cluster_(cluster),
      database_(std::move(database)),
      controller_(std::make_unique<db::Connection>(cluster.conninfo(database_), "harness")) {
  controller_->run(begin_order_sql);
}

void OrderPlayer::set_up(const Scenario& scenario) {
  sessions_.clear();
  detached_.clear();
  for (const auto& sql : scenario.once)
    controller_->run(sql);
  rest_script_.delivers = scenario.delivers;
}

void OrderPlayer::begin_order(const Scenario& scenario) {
  scenario_ = &scenario;
  history_ = {};
  actors_.clear();
  sessions_.resize(scenario.scripts.size() + 1);
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    const auto& script = i < scenario.scripts.size() ? scenario.scripts[i] : rest_script_;
    actors_.push_back({.script = &script, .number = i});
    if (!sessions_[i]) sessions_[i] = open_session(script);
    if (detached_.erase(i) > 0) attach(*sessions_[i], script);
    if (scenario.woken != i) continue;
    sessions_[i]->run("LISTEN token_insert");
    sessions_[i]->take_notifications();
  }
  if (++played_ % orders_per_vacuum == 0) controller_->run("VACUUM");
  controller_->run("SELECT begin_order()");
  for (const auto& sql : scenario.setup)
    controller_->run(sql);
}

Standing OrderPlayer::standing_of(const Actor& actor) const {
  const auto& steps = actor.script->steps;
  if (actor.is_gone || actor.taken == steps.size())
    return {.can_go = false, .waits = actor.event.has_value()};
  // A program may end while its statement waits.
  return {.can_go = !actor.event || steps[actor.taken].act == Act::die, .waits = actor.event.has_value()};
}

std::optional<History> OrderPlayer::play(const Scenario& scenario, StepOrders& orders) {
  begin_order(scenario);
  for (;;) {
    std::vector<Standing> standings;
    for (std::size_t i = 0; i < scenario.scripts.size(); ++i)
      standings.push_back(standing_of(actors_[i]));
    if (std::ranges::none_of(standings, &Standing::can_go)) {
      if (std::ranges::none_of(standings, &Standing::waits)) break;
      // A deadlock: the server ends one of the statements.
      std::this_thread::sleep_for(Milliseconds(5));
      settle();
      continue;
    }
    const auto chosen = orders.next(standings);
    if (!chosen) return std::nullopt;
    if (!standings[*chosen].can_go) throw std::runtime_error("the same steps did not do the same again");
    take_step(actors_[*chosen]);
  }
  take_rest(scenario);
  return std::move(history_);
}

void OrderPlayer::take_step(Actor& actor) {
  const auto& step = actor.script->steps[actor.taken++];
  if (step.act == Act::statement || step.act == Act::claim || step.act == Act::ask_withheld ||
      step.act == Act::keep_leases) {
    send(actor, step);
    settle();
    return;
  }
  history_.events.push_back({.session = actor.number, .step = &step, .began = history_.now++});
  act_alone(actor, step);
  auto& event = history_.events.back();
  event.ended = event.committed = history_.now++;
  settle();
}

void OrderPlayer::send(Actor& actor, const ScriptStep& step) {
  actor.event = history_.events.size();
  history_.events.push_back({.session = actor.number, .step = &step, .began = history_.now++});
  auto& session = session_of(actor);
  if (step.act == Act::claim) {
    send_claim(actor, step.queue, step.limit, step.holds);
  } else if (step.act == Act::keep_leases) {
    std::string batches;
    std::string attempts;
    for (const auto number : actor.leases) {
      const auto& lease = history_.leases[number];
      batches += (batches.empty() ? "" : ",") + lease.batch;
      attempts += (attempts.empty() ? "" : ",") + std::to_string(lease.attempt);
    }
    session.send(
        fmt::format("SELECT mailroom_keep_leases('{}', '{{{}}}', '{{{}}}')", step.queue, batches, attempts));
  } else if (step.act == Act::ask_withheld) {
    std::string tokens;
    for (const auto number : actor.leases) {
      for (const auto& token : history_.leases[number].tokens)
        tokens += (tokens.empty() ? "" : ",") + std::to_string(token.id);
    }
    session.send("SELECT token FROM mailroom_withheld('{" + tokens + "}')");
  } else {
    session.send(step.sql);
  }
}

void OrderPlayer::act_alone(Actor& actor, const ScriptStep& step) {
  trace(actor, step.name);
  if (step.act == Act::kill_server) {
    kill_server();
  } else if (step.act == Act::reconnect) {
    sessions_[actor.number] = open_session(*actor.script);
    actor.is_lost = false;
  } else {
    const auto now = history_.now;
    actor.is_gone = step.act == Act::die;
    if (actor.is_gone) {
      end_program(actor);
    } else {
      end_session(actor);
    }
    actor.event.reset();
    actor.is_lost = true;
    for (const auto number : actor.leases) {
      history_.leases[number].lost = now;
      history_.leases[number].is_gone = actor.is_gone;
    }
  }
}

bool OrderPlayer::is_blocked(const Actor& actor) {
  return controller_->run("SELECT pg_blocking_pids($1) <> '{}'", sessions_[actor.number]->pid())
      .value<bool>();
}

void OrderPlayer::settle() {
  const auto deadline = std::chrono::steady_clock::now() + longest_step;
  std::set<std::size_t> waiting;
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    for (auto& actor : actors_) {
      if (!actor.event) continue;
      const bool has_waited = waiting.contains(actor.number) || *actor.event + 1 < history_.events.size();
      while (!session_of(actor).ends_within(Milliseconds(4)) && !is_blocked(actor)) {
        if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("a statement does not end");
      }
      if (session_of(actor).is_under_way()) {
        if (waiting.insert(actor.number).second && !has_waited)
          trace(actor, history_.events[*actor.event].step->name + " ... waits");
        continue;
      }
      finish_statement(actor, has_waited || waiting.contains(actor.number));
      is_settled = false;
    }
  }
}

void OrderPlayer::finish_statement(Actor& actor, bool has_waited) {
  auto& event = history_.events[*actor.event];
  const auto number = *actor.event;
  actor.event.reset();
  event.answer = session_of(actor).answer();
  event.ended = history_.now++;
  if (event.step->act == Act::claim) {
    read_claim(actor, event);
  } else {
    const auto& answer = event.answer;
    const auto said = answer.error.empty() ? answer.value() : answer.error;
    trace(actor, (has_waited ? "... " : "") + event.step->name + (said.empty() ? "" : " -> " + said));
  }
  if (event.step->act == Act::keep_leases && event.answer.error.empty()) {
    for (const auto lease : actor.leases)
      history_.leases[lease].kept = event.ended;
  }
  if (event.step->act == Act::ask_withheld) {
    for (const auto& row : event.answer.rows) {
      for (const auto lease : actor.leases)
        history_.leases[lease].withheld.insert(std::stoll(row.at("token").value()));
    }
  }
  // What has notified so far is seen by the claim that follows.
  if (event.step->means == Means::asks) session_of(actor).take_notifications();
  actor.uncommitted.push_back(number);
  if (session_of(actor).is_in_transaction()) return;
  // A consumer relies on nothing before that.
  if (const auto batch = std::exchange(actor.unflushed, std::nullopt))
    session_of(actor).run("SELECT mailroom_flush(" + *batch + ")");
  const bool is_committed = event.answer.error.empty() && event.answer.tag != "ROLLBACK";
  for (const auto each : actor.uncommitted)
    history_.events[each].committed = is_committed ? event.ended : never;
  for (const auto each : actor.unsure_leases) {
    history_.leases[each].committed = is_committed ? event.ended : never;
    if (is_committed) actor.leases.push_back(each);
  }
  actor.uncommitted.clear();
  actor.unsure_leases.clear();
}

void OrderPlayer::trace(const Actor& actor, const std::string& what) {
  history_.trace.push_back(
      fmt::format("{:>3}  {}: {}", history_.trace.size() + 1, actor.script->session, what));
}

}  // namespace mailroom::test
