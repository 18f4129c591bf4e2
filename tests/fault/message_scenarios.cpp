// What applications ask for: messages with keys, at a time, that are cancelled, replaced, or of a topic that
// people leave.

#include "fault/scenario_steps.hpp"

namespace mailroom::test {
namespace {

Scenario cancels(bool in_transaction) {
  auto steps = in_transaction ? std::vector<ScriptStep>{begin(), cancel("m"), commit()}
                              : std::vector<ScriptStep>{cancel("m", true)};
  return {.name = in_transaction ? "a cancel in a transaction" : "a cancel",
          .scripts = {{.session = "application", .steps = std::move(steps), .may_die = true},
                      {.session = "collector", .steps = {claim(), claim()}, .may_die = true},
                      {.session = "other", .steps = {insert("b", true)}}},
          .finds = in_transaction ? std::vector<std::string>{"a claim leases what a cancel is changing"}
                                  : std::vector<std::string>{"a cancelled message is sent",
                                                             "a cancel overlooks what is leased"},
          .setup = {message("m", ", idempotency_key => 'm'")},
          .is_long = in_transaction};
}

/// While a cancel is open, a claim leases what none changes; another cancel has to wait for it.
Scenario cancels_beside_a_claim() {
  return {.name = "two cancels beside a claim",
          .scripts = {{.session = "application", .steps = {begin(), cancel("n"), commit()}, .may_die = true},
                      {.session = "slow collector", .steps = {begin(), claim(), commit()}},
                      {.session = "other", .steps = {cancel("m", true)}}},
          .finds = {"a cancel does not wait for a claim"},
          .setup = {message("m", ", idempotency_key => 'm'"), message("n", ", idempotency_key => 'n'")}};
}

Scenario schedule() {
  return {.name = "the schedule",
          .scripts = {{.session = "application", .steps = {begin(), cancel("m"), commit()}, .may_die = true},
                      {.session = "collector", .steps = {release(), claim(), claim()}, .may_die = true},
                      {.session = "another", .steps = {release()}}},
          .finds = {"a cancelled message stays in the schedule", "a scheduled message is forgotten"},
          .setup = {scheduled_message("m"), scheduled_message("n")},
          .is_long = true};
}

Scenario after_its_time() {
  const ScriptStep schedules{.name = "schedules m",
                             .sql = scheduled_message("m"),
                             .uses = {{"schedule", Use::writes}, {"locks", Use::writes}}};
  auto releases = release();
  releases.uses["schedule"] = Use::writes;
  return {.name = "a message committed after its time",
          .scripts = {{.session = "application", .steps = {begin(), schedules, commit()}, .may_die = true},
                      {.session = "collector", .steps = {releases, releases, claim()}}},
          .finds = {"a message that is committed after its time is forgotten"},
          .released_by = 1};
}

Scenario one_key() {
  return {.name = "a key of two applications",
          .scripts = {{.session = "application",
                       .steps = {begin(), send_message("keyed", "k"), commit()},
                       .may_die = true},
                      {.session = "other", .steps = {send_message("keyed", "k")}},
                      {.session = "collector", .steps = {claim(), claim()}, .may_die = true}},
          .finds = {"a key sends twice"},
          .is_long = true};
}

Scenario submitted_twice() {
  return {.name = "a mail is submitted twice",
          .scripts = {{.session = "service", .steps = {begin(), submit("keyed"), commit()}, .may_die = true},
                      {.session = "another", .steps = {submit("keyed")}},
                      {.session = "collector", .steps = {claim(), claim()}, .may_die = true}},
          .finds = {"a key is submitted twice"},
          .is_long = true};
}

Scenario replaces() {
  auto replace = send_message("new", "k", R"(, options => '{"replace": true}')");
  replace.means = Means::replaces;
  replace.subject = "old";
  return {.name = "a key is replaced",
          .scripts = {{.session = "application", .steps = {begin(), replace, commit()}, .may_die = true},
                      {.session = "collector", .steps = {claim(), claim()}, .may_die = true},
                      {.session = "other", .steps = {insert("b", true)}}},
          .finds = {"what a key replaces is sent too"},
          .setup = {message("old", ", idempotency_key => 'k'")},
          .is_long = true};
}

Scenario unsubscribes() {
  const Uses wishes{{"wishes", Use::writes}};
  return {.name = "a reader leaves a topic",
          .scripts = {{.session = "reader",
                       .steps = {{.name = "unsubscribes",
                                  .sql = "SELECT mailroom_unsubscribe('m@test.example', 'news')",
                                  .uses = wishes,
                                  .means = Means::unsubscribes,
                                  .subject = "m@test.example"}}},
                      {.session = "sender",
                       .steps = {claim(),
                                 {.name = "asks who has left",
                                  .act = Act::ask_withheld,
                                  .uses = {{"wishes", Use::reads}}},
                                 claim()},
                       .delivers = true}},
          .finds = {"nobody asks who has left before an attempt"},
          .once = {"SELECT mailroom_create_topic('news', 'News')"},
          .setup = {message("m", ", topic => 'news'")},
          .delivers = true};
}

}  // namespace

std::vector<Scenario> message_scenarios() {
  return {cancels(false),    cancels(true),    cancels_beside_a_claim(),
          schedule(),        after_its_time(), one_key(),
          submitted_twice(), replaces(),       unsubscribes()};
}

}  // namespace mailroom::test
