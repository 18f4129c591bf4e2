// Definitions of queues: their texts, their JSON, values that operators write, and the checks of a plan.

#include "queue/queue_plan.hpp"

#include "queue/queue_setting.hpp"
#include "support/actions.hpp"
#include "support/catch.hpp"

namespace mailroom::test::queue_plan_test {

using namespace std::chrono_literals;

namespace {

config::SettingValue given(const std::string& key, const std::string& text,
                           std::vector<std::string> items = {}) {
  return {
      .key = key, .text = text, .items = std::move(items), .origin = {config::OriginKind::flag, "--" + key}};
}

/// The built-in ones, a new one and a retired one.
const queue::Actions known = [] {
  auto actions = queue::Actions::built_in().all();
  actions.push_back({.name = "magic_link", .number = 4, .path = "/magic"});
  actions.push_back({.name = "old", .number = 5, .is_retired = true});
  return queue::Actions(actions);
}();

queue::QueueProperties with(const queue::QueueProperties& properties,
                            const std::vector<config::SettingValue>& values) {
  return queue::changed(properties, values, &known);
}

queue::QueueCatalogue two_queues() {
  return {.newest = 9,
          .queues = {{.name = "mailroom", .cursor = 5, .properties = {.actions = {"activation"}}},
                     {.name = "recovery",
                      .cursor = 7,
                      .properties = {.actions = {"password_recovery"}, .budget = "provider"}}},
          .budgets = {{.name = "provider", .paced = {{14, 1s}, 50}}},
          .actions = known};
}

/// The message of the error that checked() throws for a plan of one change.
std::string refusal(const queue::QueueChange& change, const std::vector<queue::BudgetChange>& budgets = {}) {
  try {
    queue::checked({.budgets = budgets, .queues = {change}}, two_queues());
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    CHECK_FALSE(error.hint().empty());
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the JSON of a definition reads back as the same definition") {
  const queue::QueueProperties full{.actions = {"password_recovery"},
                                    .priority = -3,
                                    .rate = queue::PacedRate{{38, 100s}, 4},
                                    .budget = "provider",
                                    .batch_limit = "7",
                                    .batch_timeout = "0s"};
  CHECK(queue::properties_of(queue::properties_json(full)) == full);
  CHECK(queue::properties_of(queue::properties_json({})) == queue::QueueProperties());
  CHECK(queue::properties_of("[1]") == queue::QueueProperties());
  CHECK(queue::properties_of(R"({"actions": 5, "priority": "x", "rate": {"tokens": 1}, "budget": 7})") ==
        queue::QueueProperties());
  // An action that this program does not know stays in the definition.
  CHECK(queue::properties_of(R"({"actions": ["password_recovery", "magic_link"]})").actions ==
        std::vector<std::string>{"magic_link", "password_recovery"});
  CHECK(queue::paced_of(queue::paced_json({{38, 100s}, 4})) == queue::PacedRate{{38, 100s}, 4});
}

TEST_CASE("values change the properties they name, and a later value replaces an earlier one") {
  const queue::QueueProperties before{
      .priority = 5, .rate = queue::PacedRate{{1, 1s}, 3}, .budget = "provider"};
  auto after = with(before, {given("rate", "2/s"), given("rate", "0.5/s"), given("budget", "none"),
                             given("actions", "recovery", {"recovery"})});
  CHECK(after.rate == queue::PacedRate{{5, 10s}, 3});
  CHECK(after.budget.empty());
  CHECK(after.priority == 5);
  CHECK(after.actions == std::vector<std::string>{"password_recovery"});
  after = with(after, {given("rate", "none"), given("actions", "x", {"activation", " recovery"})});
  CHECK_FALSE(after.rate);
  CHECK(after.actions == std::vector<std::string>{"activation", "password_recovery"});
  after = with(after, {given("actions", "x", {"message", "magic_link", "message"})});
  CHECK(after.actions == std::vector<std::string>{"magic_link", "message"});
  CHECK(with(after, {given("actions", "all", {"all"})}).actions.empty());
  CHECK(with(queue::QueueProperties(), {given("burst", "2"), given("rate", "7/s")}).rate ==
        queue::PacedRate{{7, 1s}, 2});
  CHECK(with(queue::QueueProperties(), {given("rate", "7/s")}).rate == queue::PacedRate{{7, 1s}, 1});
}

TEST_CASE("without a burst a rate lets go what a tenth of a second has, and one token at least") {
  const auto burst_of = [](const queue::QueueProperties& before, const std::string& rate) {
    return with(before, {given("rate", rate)}).rate->burst;
  };
  CHECK(burst_of({}, "1/s") == 1);
  CHECK(burst_of({}, "14/s") == 1);
  CHECK(burst_of({}, "100/min") == 1);
  CHECK(burst_of({}, "500/s") == 50);
  CHECK(burst_of({.rate = queue::PacedRate{{500, 1s}, 50}}, "1/s") == 1);
  CHECK(burst_of({.rate = queue::PacedRate{{500, 1s}, 7}}, "1/s") == 7);
}

TEST_CASE("a value that no queue can have is refused") {
  const auto& [key, text] = GENERATE(table<std::string, std::string>({{"rate", "0"},
                                                                      {"rate", "fast"},
                                                                      {"rate", "0/s"},
                                                                      {"burst", "5"},
                                                                      {"priority", "1.5"},
                                                                      {"priority", "2000"},
                                                                      {"batch_limit", "0"},
                                                                      {"batch_timeout", "2d"},
                                                                      {"actions", "login"},
                                                                      {"budget", "a,b"}}));
  CAPTURE(key, text);
  CHECK_THROWS_AS(with(queue::QueueProperties(), {given(key, text, {text})}), Error);
}

TEST_CASE("the changes of a definition name the value before and after") {
  const auto changes =
      queue::changes_between({.actions = {"activation"}, .rate = queue::PacedRate{{14, 1s}, 10}},
                             {.priority = 10, .rate = queue::PacedRate{{38, 100s}, 10}});
  REQUIRE(changes.size() == 3);
  CHECK(changes[0].name + ": " + changes[0].before + " -> " + changes[0].after ==
        "actions: activation -> all");
  CHECK(changes[1].name + ": " + changes[1].before + " -> " + changes[1].after == "priority: 0 -> 10");
  CHECK(changes[2].name + ": " + changes[2].before + " -> " + changes[2].after ==
        "rate: 14/s, burst 10 -> 0.38/s, burst 10");
}

TEST_CASE("a plan is in order of names, and without what changes nothing") {
  const queue::QueueProperties kept{.actions = {"activation"}};
  const auto plan = queue::checked(
      {.budgets = {{.name = "provider", .before = queue::PacedRate{{14, 1s}, 50}, .after = {{14, 1s}, 50}},
                   {.name = "bulk", .before = std::nullopt, .after = {{1, 1s}, 10}}},
       .queues = {{.name = "z", .start = queue::QueueStart{.cursor = 9}},
                  {.name = "mailroom", .before = kept, .after = kept},
                  {.name = "a", .after = {.budget = "bulk"}, .start = queue::QueueStart{.cursor = 9}}}},
      two_queues());
  REQUIRE(plan.budgets.size() == 1);
  CHECK(plan.budgets[0].name == "bulk");
  REQUIRE(plan.queues.size() == 2);
  CHECK(plan.queues[0].name == "a");
  CHECK(queue::queues_after(plan, two_queues()).size() == 4);
}

TEST_CASE("a plan that cannot be carried out is refused") {
  CHECK(refusal({.name = "mailroom", .start = queue::QueueStart()}) == "the queue \"mailroom\" exists");
  CHECK(refusal({.name = "mailroom", .after = {.budget = "other"}}) == "there is no budget \"other\"");
  const std::string common = "cannot name both a queue and a budget";
  CHECK(refusal({.name = "provider", .start = queue::QueueStart()}).find(common) != std::string::npos);
  CHECK(refusal({.name = "mailroom", .after = {.budget = "recovery"}},
                {{.name = "recovery", .before = {}, .after = {}}})
            .find(common) != std::string::npos);
  CHECK(refusal({.name = "mailroom", .after = {.budget = "provider"}}).empty());
}

TEST_CASE("an action that no queue takes is found") {
  auto queues = two_queues().queues;
  CHECK(queue::untaken_actions(queues, known) == std::vector<std::string>{"message", "magic_link"});
  queues.pop_back();
  CHECK(queue::untaken_actions(queues, known) ==
        std::vector<std::string>{"password_recovery", "message", "magic_link"});
  queues.push_back({.name = "all"});
  CHECK(queue::untaken_actions(queues, known).empty());
  CHECK(queue::untaken_actions({}, known).size() == 4);
}

TEST_CASE("a queue that takes all actions keeps those that a new one does not take over, by name") {
  queue::QueueCatalogue catalogue{.queues = {{.name = "mailroom"}}, .actions = known};
  const auto change =
      queue::take_over({.name = "recovery", .after = {.actions = {"password_recovery"}}}, catalogue);
  REQUIRE(change);
  CHECK(change->after.actions == std::vector<std::string>{"activation", "magic_link", "message", "old"});
}

TEST_CASE("an unknown queue is reported with the nearest name, or with all") {
  const auto catalogue = two_queues();
  CHECK(queue::unknown_queue("recvery", {"mailroom", "recovery"}).hint() == "did you mean: recovery");
  CHECK(queue::unknown_queue("x", {"mailroom", "recovery"}).hint() == "queues: mailroom, recovery");
  CHECK_THROWS_AS(queue::require_queue(catalogue, "x"), Error);
  CHECK(queue::require_queue(catalogue, "recovery").cursor == 7);
}

}  // namespace mailroom::test::queue_plan_test
