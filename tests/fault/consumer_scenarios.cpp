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
      .setup = {account("a")}};
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

}  // namespace

std::vector<Scenario> consumer_scenarios() {
  std::vector<Scenario> all{two_collectors(),          two_senders(),      sender_holds_a_batch(),
                            sender_keeps_its_leases(), deferrals(),        expired_token(),
                            killed_server(false),      killed_server(true)};
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
