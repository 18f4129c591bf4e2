// The sessions of an order: how they begin and end, alone or with the server.

#include <algorithm>
#include <stdexcept>

#include "claim/claim_rows.hpp"
#include "fault/order_player.hpp"

namespace mailroom::test {

std::unique_ptr<SteppingSession> OrderPlayer::open_session(const Script& script) {
  auto session = std::make_unique<SteppingSession>(cluster_.conninfo(database_) + " application_name='" +
                                                   script.session + "'");
  session->run("SET plan_cache_mode = force_generic_plan; SET jit = off");
  session->run("PREPARE claim AS " + claim::claim_and_fetch_sql(false, true));
  attach(*session, script);
  return session;
}

void OrderPlayer::attach(SteppingSession& session, const Script& script) const {
  const bool claims =
      &script == &rest_script_ ||
      std::ranges::any_of(script.steps, [](const ScriptStep& step) { return step.act == Act::claim; });
  if (!claims) return;
  for (const auto& queue : scenario_->queues)
    session.run("SELECT mailroom_attach('" + queue + "')");
}

void OrderPlayer::end_session(const Actor& actor) {
  if (!controller_->run("SELECT pg_terminate_backend($1, 20000)", sessions_[actor.number]->pid())
           .value<bool>())
    throw std::runtime_error("a session did not end");
  sessions_[actor.number].reset();
}

/// Does what the server does at the end of a session, as others see it, and keeps the session for the next
/// order: a new one would parse and plan every function of a claim anew.
void OrderPlayer::end_program(const Actor& actor) {
  auto& session = session_of(actor);
  if (session.is_under_way()) controller_->run("SELECT pg_cancel_backend($1)", session.pid());
  while (!session.ends_within(Milliseconds(100))) {
  }
  session.run("ROLLBACK");
  session.run("SELECT pg_advisory_unlock_all()");
  detached_.insert(actor.number);
}

void OrderPlayer::kill_server() {
  cluster_.stop("immediate");
  cluster_.start();
  controller_ = std::make_unique<db::Connection>(cluster_.conninfo(database_), "harness");
  for (auto& actor : actors_) {
    sessions_[actor.number].reset();
    detached_.erase(actor.number);
    actor.event.reset();
    for (const auto number : actor.leases) {
      history_.leases[number].lost = history_.now;
      history_.leases[number].is_gone = true;
    }
    actor.is_gone = actor.number < scenario_->scripts.size();
  }
  sessions_.back() = open_session(rest_script_);
}

}  // namespace mailroom::test
