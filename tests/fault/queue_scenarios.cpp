// Inserting transactions and claims: gaps, queues with actions, pauses, rewinds, budgets.

#include "fault/scenario_steps.hpp"

namespace mailroom::test {
namespace {

const std::vector<std::string> two_queues{"activation", "password_recovery"};
const std::vector<std::string> create_two_queues{
    R"(SELECT mailroom_create_queue('activation', 0, '{"actions": ["activation"]}', 'token_insert'))",
    R"(SELECT mailroom_create_queue('password_recovery', 0, '{"actions": ["password_recovery"]}', 'token_insert'))"};
constexpr const char* free_budget = "UPDATE mailroom_budgets SET taken_until = '-infinity'";

Scenario late_commit() {
  return {.name = "a late commit",
          .scripts = {{.session = "late", .steps = {begin(), insert("a"), commit()}, .may_die = true},
                      {.session = "others", .steps = {insert("b", true), insert("c", true)}},
                      {.session = "collector", .steps = {claim(), claim()}, .may_die = true}},
          .finds = {"a cursor alone, without gaps", "a gap is forgotten at the first check",
                    "the usual claim takes a stretch with a gap", "the usual claim forgets gaps"},
          .is_long = true};
}

Scenario another_order() {
  const ScriptStep draws{.name = "draws its transaction id",
                         .sql = "SELECT pg_current_xact_id()",
                         .uses = {{drawn_ids, Use::writes}}};
  return {.name = "ids in another order than transactions",
          .scripts = {{.session = "older", .steps = {begin(), draws, insert("a"), commit()}},
                      {.session = "younger", .steps = {begin(), insert("b"), commit()}},
                      {.session = "collector", .steps = {claim(), claim()}}},
          .finds = {"the horizon is the snapshot's xmax"},
          .is_long = true};
}

Scenario claim_waits() {
  return {.name = "a claim waits for another",
          .scripts = {{.session = "slow collector", .steps = {begin(), claim(), commit()}},
                      {.session = "collector", .steps = {claim(), claim()}},
                      {.session = "late", .steps = {begin(), insert("a"), commit()}},
                      {.session = "other", .steps = {insert("b", true)}}},
          .finds = {"the transaction id before the lock", "… under load, by chance"},
          .is_long = true};
}

/// A trigger of the application waits between the id of a token and its row.
Scenario id_before_row() {
  const Uses gate{{"gate", Use::writes}, {drawn_ids, Use::writes}, {seen_rows, Use::adds}};
  return {
      .name = "an id long before its row",
      .scripts = {{.session = "gate",
                   .steps = {{.name = "closes",
                              .sql = "SELECT pg_advisory_lock(77)",
                              .uses = {{"gate", Use::writes}}},
                             {.name = "opens", .sql = "SELECT pg_advisory_unlock(77)", .uses = gate}}},
                  {.session = "late",
                   .steps = {{.name = "INSERT a",
                              .sql = recovery("a"),
                              .uses = gate,
                              .means = Means::inserts,
                              .subject = "a"}}},
                  {.session = "other", .steps = {insert("b", true)}},
                  {.session = "collector", .steps = {claim(), claim()}}},
      .finds = {"an id before the transaction id"},
      .once =
          {"CREATE FUNCTION pause_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
           "IF NEW.action = 'password_recovery' THEN PERFORM pg_advisory_xact_lock(77); END IF; RETURN NEW; END $$",
           "CREATE TRIGGER pause_insert BEFORE INSERT ON tokens FOR EACH ROW EXECUTE FUNCTION pause_insert()"},
      .setup = {account("a", "active")}};
}

Scenario pauses() {
  const auto pause = [](bool is_paused) {
    return ScriptStep{
        .name = is_paused ? "pauses" : "resumes",
        .sql = fmt::format("SELECT mailroom_pause_queue('mailroom', {}, 'token_insert')", is_paused),
        .uses = {{"queue mailroom", Use::writes}},
        .means = is_paused ? Means::pauses : Means::resumes,
        .subject = "mailroom"};
  };
  return {.name = "pauses",
          .scripts = {{.session = "operator", .steps = {pause(true), pause(false)}, .may_die = true},
                      {.session = "collector", .steps = {claim()}, .may_die = true},
                      {.session = "another", .steps = {claim(), claim()}},
                      {.session = "application", .steps = {insert("b", true)}}},
          .finds = {"a pause is ignored", "a paused queue is taken over"},
          .setup = {account("a")},
          .cleanup = {"SELECT mailroom_pause_queue('mailroom', false, 'token_insert')"},
          .is_long = true};
}

Scenario queues_with_actions() {
  const auto both = [](const std::string& name, bool is_alone) {
    auto step = insert(name, is_alone);
    step.name = fmt::format("INSERT {0}-1, {0}-r, {0}-2", name);
    step.sql = account(name + "-1") + "; " + recovery(name + "-r") + "; " + account(name + "-2");
    return step;
  };
  return {.name = "two queues with actions",
          .scripts = {{.session = "late", .steps = {begin(), both("a", false), commit()}},
                      {.session = "other", .steps = {both("b", true)}},
                      {.session = "collector",
                       .steps = {claim("activation", 4), claim("activation", 1)},
                       .may_die = true},
                      {.session = "another", .steps = {claim("password_recovery")}}},
          .finds = {"a queue takes the tokens of every action",
                    "the usual claim takes the tokens of every action",
                    "the fetch forgets the mask of a batch", "of a gap a queue leases what it does not take",
                    "a gap is deleted before all of it is leased"},
          .once = create_two_queues,
          .setup = {account("a-r", "active"), account("b-r", "active")},
          .queues = two_queues,
          .is_long = true};
}

Scenario rewinds() {
  const ScriptStep rewind{
      .name = "rewinds password_recovery",
      .sql = "SELECT cursor_before FROM mailroom_rewind('password_recovery', 0, 1000, '{}')",
      .uses = {{"queue password_recovery", Use::writes}, {drawn_ids, Use::reads}, {seen_rows, Use::reads}},
      .means = Means::rewinds,
      .subject = "password_recovery"};
  return {.name = "a rewind of one queue",
          .scripts = {{.session = "operator", .steps = {rewind}},
                      {.session = "collector", .steps = {claim("activation"), claim("activation")}},
                      {.session = "another",
                       .steps = {claim("password_recovery"), claim("password_recovery")},
                       .may_die = true},
                      {.session = "application", .steps = {insert("b", true)}}},
          .finds = {"a rewind moves another queue too"},
          .once = create_two_queues,
          .setup = {account("a"), account("r", "active"), recovery("r")},
          .queues = two_queues,
          .is_long = true};
}

std::vector<std::string> with_budget(int burst, const std::vector<std::string>& queues) {
  std::vector<std::string> statements{fmt::format(
      R"(SELECT mailroom_write_budget('slow', '{{"tokens": 1, "milliseconds": 86400000, "burst": {}}}'))",
      burst)};
  for (const auto& queue : queues)
    statements.push_back(fmt::format(
        R"(SELECT mailroom_write_queue('{0}', mailroom_queue_definition('{0}') || '{{"budget": "slow"}}'))",
        queue));
  return statements;
}

/// One token a day: what was taken at once is all that may be taken.
std::vector<Scenario> budgets() {
  auto shared = create_two_queues;
  for (const auto& statement : with_budget(2, two_queues))
    shared.push_back(statement);
  return {{.name = "a rate, and a take-over",
           .scripts = {{.session = "collector", .steps = {paced_claim("mailroom", 2)}, .may_die = true},
                       {.session = "another", .steps = {paced_claim(), paced_claim()}, .may_die = true},
                       {.session = "application", .steps = {insert("b", true), insert("c", true)}}},
           .finds = {"what is taken over is not debited"},
           .once = with_budget(4, {"mailroom"}),
           .setup = {account("a1"), account("a2")},
           .cleanup = {free_budget},
           .burst = 4,
           .is_long = true},
          {.name = "a rate is used up",
           .scripts = {{.session = "collector",
                        .steps = {paced_claim("mailroom", 1), paced_claim("mailroom", 1)}},
                       {.session = "another", .steps = {paced_claim("mailroom", 1)}}},
           .finds = {"a budget is debited twice"},
           .once = with_budget(4, {"mailroom"}),
           .setup = {account("a"), account("b"), account("c"), account("d")},
           .burst = 4},
          {.name = "a rate of two queues",
           .scripts = {{.session = "collector", .steps = {begin(), paced_claim("activation"), commit()}},
                       {.session = "another",
                        .steps = {begin(), paced_claim("password_recovery"), commit()},
                        .may_die = true}},
           .finds = {"two claims read one budget at once"},
           .once = shared,
           .setup = {account("a"), account("b"), account("r", "active"), recovery("r"), recovery("r")},
           .cleanup = {free_budget},
           .queues = two_queues,
           .burst = 2}};
}

}  // namespace

std::vector<Scenario> queue_scenarios() {
  std::vector<Scenario> all{late_commit(), another_order(),       claim_waits(), id_before_row(),
                            pauses(),      queues_with_actions(), rewinds()};
  for (auto& scenario : budgets())
    all.push_back(std::move(scenario));
  return all;
}

}  // namespace mailroom::test
