// Consumers beside each other: leases, take-overs, outcomes, and what a crash of the server leaves of them.

#include "fault/scenario_steps.hpp"

namespace mailroom::test {
namespace {

ScriptStep kill_server() {
  return {.name = "the server is killed", .act = Act::kill_server};
}

/// What changes the leases of the queue, beside claims.
ScriptStep lease_step(Act act, const std::string& name) {
  return {.name = name, .act = act, .uses = {{"queue mailroom", Use::writes}}};
}

Scenario two_collectors() {
  return {
      .name = "two collectors",
      .scripts = {{.session = "collector", .steps = {claim(), claim()}, .may_die = true},
                  {.session = "another", .steps = {claim(), claim()}, .may_die = true},
                  {.session = "application", .steps = {insert("b", true)}}},
      .finds = {"batches of living collectors are taken over", "the usual claim forgets batches in flight",
                "a lease that was taken over counts as begun"},
      .setup = {account("a")},
      .is_long = true};
}

Scenario two_senders() {
  auto scenario = two_collectors();
  scenario.name = "two senders";
  scenario.finds = {"batches of living senders are taken over",
                    "batches of collectors that wait for answers are taken over"};
  for (auto& script : scenario.scripts)
    script.delivers = true;
  scenario.delivers = true;
  return scenario;
}

Scenario sender_holds_a_batch() {
  auto beside = claim();
  beside.name = "claims beside its batch";
  beside.holds = true;
  return {.name = "a sender holds a batch",
          .scripts =
              {{.session = "sender", .steps = {claim(), beside, claim()}, .may_die = true, .delivers = true},
               {.session = "another", .steps = {claim()}, .delivers = true},
               {.session = "application", .steps = {insert("b", true)}}},
          .finds = {"a batch that its sender holds is taken for abandoned"},
          .setup = {account("a")},
          .is_long = true,
          .delivers = true};
}

Scenario sender_keeps_its_leases() {
  return {.name = "a sender loses its session",
          .scripts = {{.session = "sender",
                       .steps = {claim(), lease_step(Act::lose_session, "loses its session"),
                                 lease_step(Act::reconnect, "reconnects"),
                                 lease_step(Act::keep_leases, "keeps its leases"), claim()},
                       .delivers = true},
                      {.session = "another", .steps = {claim(), claim()}, .delivers = true}},
          .finds = {"a new session keeps no leases"},
          .setup = {account("a")},
          .delivers = true};
}

Scenario deferrals() {
  return {.name = "deferrals",
          .scripts = {{.session = "sender",
                       .steps = {claim(), claim(), claim()},
                       .may_die = true,
                       .delivers = true,
                       .defers = true},
                      {.session = "another", .steps = {claim(), claim()}, .delivers = true},
                      {.session = "application", .steps = {insert("b", true)}}},
          .finds = {"deferred mails are forgotten", "every outcome is recorded as accepted",
                    "what a program refuses is recorded as accepted"},
          .setup = {account("a")},
          .is_long = true,
          .delivers = true};
}

Scenario expired_token() {
  return {.name = "a token expires before a claim",
          .scripts = {{.session = "collector", .steps = {claim(), claim()}, .may_die = true},
                      {.session = "another", .steps = {claim()}},
                      {.session = "application", .steps = {insert("b", true)}}},
          .finds = {"tokens that expire before a claim are forgotten"},
          .setup = {account("x"), "UPDATE tokens SET expires_at = created_at", account("a")}};
}

/// Inserts do not notify while a collector polls. It rests when it was told of no transaction that has not
/// notified.
Scenario begins_to_listen() {
  const auto waking_step = [](const std::string& name, const std::string& sql, Means means = Means::nothing) {
    return ScriptStep{.name = name, .sql = sql, .uses = {{"waking", Use::writes}}, .means = means};
  };
  auto inserts = insert("a");
  auto commits = commit();
  auto inserts_alone = insert("b", true);
  for (auto* step : {&inserts, &commits, &inserts_alone})
    step->uses["waking"] = Use::reads;
  return {.name = "a collector begins to listen",
          .scripts = {{.session = "collector",
                       .steps = {waking_step("stays polling", "SELECT mailroom_stay_polling()"),
                                 waking_step("listens", "SELECT mailroom_start_listening('token_insert')"),
                                 waking_step("asks who may not notify", "SELECT mailroom_open_inserts(NULL)",
                                             Means::asks),
                                 claim()}},
                      {.session = "late", .steps = {begin(), inserts, commits}, .may_die = true},
                      {.session = "other", .steps = {inserts_alone}}},
          .finds = {"listening, silent transactions are forgotten", "listening, inserts still do not notify"},
          .is_long = true,
          .woken = 0};
}

/// Two readers of one mailbox.
Scenario report_is_read_twice() {
  const ScriptStep judge{
      .name = "judges the report",
      .sql =
          "SELECT is_new AND token IS NOT NULL FROM mailroom_record_bounces('maildir', jsonb_build_array(jsonb_build_object("
          "'digest', repeat('ab', 32), 'place', 1, 'tokens', (SELECT jsonb_agg(id) FROM tokens), 'address', "
          "'a@test.example', 'kind', 'hard', 'reason', 'unknown user')))",
      .uses = {{"reports", Use::writes}, {"queue mailroom", Use::writes}, {"locks", Use::writes}},
      .means = Means::judges};
  return {.name = "a report is read twice",
          .scripts = {{.session = "sender", .steps = {claim(), claim()}, .delivers = true},
                      {.session = "reader", .steps = {begin(), judge, commit()}, .may_die = true},
                      {.session = "another", .steps = {judge}}},
          .finds = {"a report that is read again is judged again"},
          .setup = {account("a")},
          .delivers = true};
}

Scenario killed_server(bool delivers) {
  return {.name = delivers ? "the server is killed beside a sender" : "the server is killed",
          .scripts = {{.session = "machine", .steps = {kill_server()}},
                      {.session = "consumer", .steps = {claim(), claim()}, .delivers = delivers},
                      {.session = "application", .steps = {insert("b", true)}}},
          .finds = {delivers ? "outcomes are not durable" : "acknowledgements are not durable"},
          .setup = {account("a")},
          .is_long = delivers,
          .delivers = delivers};
}

/// Its claims commit without waiting for the disk, and are flushed afterwards.
Scenario killed_server_after_waits() {
  auto scenario = killed_server(false);
  scenario.name = "the server is killed after claims that waited";
  const ScriptStep has_waited{
      .name = "has waited for a claim",
      .sql =
          "SELECT set_config('mailroom.waited_at', (extract(epoch FROM clock_timestamp())::bigint + 86400)::text, false)"};
  auto& steps = scenario.scripts[1].steps;
  // More is due after each.
  for (auto& step : steps)
    step.limit = 1;
  steps.insert(steps.begin(), has_waited);
  scenario.finds = {"claims that have waited are not durable"};
  return scenario;
}

/// What an application was told is so after a crash.
Scenario killed_beside_applications() {
  return {.name = "the server is killed beside applications",
          .scripts = {{.session = "machine", .steps = {kill_server()}},
                      {.session = "service", .steps = {submit("keyed")}},
                      {.session = "application", .steps = {cancel("m", true)}}},
          .finds = {"a submitted mail is not durable", "a cancel is not durable"},
          .setup = {message("m", ", idempotency_key => 'm'")},
          .is_long = true};
}

}  // namespace

std::vector<Scenario> consumer_scenarios() {
  std::vector<Scenario> all{
      two_collectors(),     two_senders(),       sender_holds_a_batch(),      sender_keeps_its_leases(),
      deferrals(),          expired_token(),     begins_to_listen(),          report_is_read_twice(),
      killed_server(false), killed_server(true), killed_server_after_waits(), killed_beside_applications()};
  // A crash of the server concerns every step.
  for (auto& scenario : all) {
    Uses everything;
    for (const auto& script : scenario.scripts) {
      for (const auto& step : script.steps) {
        for (const auto& [thing, use] : step.uses)
          everything[thing] = Use::writes;
      }
    }
    for (auto& script : scenario.scripts) {
      for (auto& step : script.steps) {
        if (step.act == Act::kill_server) step.uses = everything;
      }
    }
  }
  return all;
}

}  // namespace mailroom::test
