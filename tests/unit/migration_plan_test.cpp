#include "schema/migration_plan.hpp"

#include <functional>

#include "base/error.hpp"
#include "support/catch.hpp"

namespace mailroom::test::migration_plan_test {
namespace {

/// The steps of a plan, `up 0 up 1`, with the version at the end.
std::string text_of(const std::vector<schema::MigrationStep>& steps) {
  std::string text;
  for (const auto& step : steps)
    text += (step.direction == schema::Direction::up ? "up " : "down ") +
            std::to_string(step.migration->version) + " ";
  if (steps.empty()) return "nothing";
  const auto after = steps.back().version_after();
  return text + "-> " + (after ? std::to_string(*after) : "none");
}

const std::vector<schema::Migration> three{
    {0, "first", "u0", "d0"}, {1, "second", "u1", "d1"}, {2, "third", "u2", "d2"}};

struct Scenario {
  schema::SchemaState state;
  int down;
  std::string plan_up;
  std::string plan_down;
};

template <typename Plan>
std::string refusal(Plan plan) {
  try {
    plan();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::schema);
    CHECK_FALSE(error.hint().empty());
    return error.what();
  }
  return "taken";
}

/// The errors of every way to plan from `state`.
std::vector<std::string> refusals(const std::vector<schema::Migration>& migrations,
                                  const schema::SchemaState& state) {
  return {refusal([&] { schema::require_plannable(migrations, state); }),
          refusal([&] { schema::plan_up(migrations, state); }),
          refusal([&] { schema::plan_down(migrations, state, 0); }),
          refusal([&] { schema::plan_down(migrations, state, 1); })};
}

}  // namespace

TEST_CASE("from every state the plan up applies missing migrations and the plan down reverts present ones") {
  const std::vector<Scenario> scenarios{
      {{}, 1, "up 0 up 1 up 2 -> 2", "nothing"},
      {{}, 3, "up 0 up 1 up 2 -> 2", "nothing"},
      {{.version = 0}, 0, "up 1 up 2 -> 2", "nothing"},
      {{.version = 0}, 1, "up 1 up 2 -> 2", "down 0 -> none"},
      {{.version = 0}, 2, "up 1 up 2 -> 2", "down 0 -> none"},
      {{.version = 0, .unrecorded = true}, 1, "up 1 up 2 -> 2", "down 0 -> none"},
      {{.version = 1}, 1, "up 2 -> 2", "down 1 -> 0"},
      {{.version = 1}, 2, "up 2 -> 2", "down 1 down 0 -> none"},
      {{.version = 2}, 0, "nothing", "nothing"},
      {{.version = 2}, 1, "nothing", "down 2 -> 1"},
      {{.version = 2}, 2, "nothing", "down 2 down 1 -> 0"},
      {{.version = 2}, 3, "nothing", "down 2 down 1 down 0 -> none"},
      {{.version = 2}, 1000, "nothing", "down 2 down 1 down 0 -> none"},
  };
  for (const auto& scenario : scenarios) {
    INFO("version " << scenario.state.version.value_or(-1) << ", " << scenario.down << " down");
    CHECK_NOTHROW(schema::require_plannable(three, scenario.state));
    CHECK(text_of(schema::plan_up(three, scenario.state)) == scenario.plan_up);
    CHECK(text_of(schema::plan_down(three, scenario.state, scenario.down)) == scenario.plan_down);
  }
}

TEST_CASE("a plan to a version goes up, down or nowhere") {
  const auto to = [](const schema::SchemaState& state, long version) {
    return text_of(schema::plan_goto(three, state, version));
  };
  CHECK(to({}, 0) == "up 0 -> 0");
  CHECK(to({}, 2) == "up 0 up 1 up 2 -> 2");
  CHECK(to({.version = 0}, 2) == "up 1 up 2 -> 2");
  CHECK(to({.version = 1}, 1) == "nothing");
  CHECK(to({.version = 2}, 1) == "down 2 -> 1");
  CHECK(to({.version = 2}, 0) == "down 2 down 1 -> 0");
  CHECK(text_of(schema::plan_up(three, {}, 1)) == "up 0 up 1 -> 1");
  CHECK(text_of(schema::plan_up(three, {.version = 1}, 1)) == "nothing");
  CHECK(text_of(schema::plan_down(three, {.version = 2}, std::nullopt)) == "down 2 down 1 down 0 -> none");
}

TEST_CASE("an unknown version, or a lower one for up, is a usage error") {
  const auto message = [](const std::function<void()>& plan) -> std::string {
    try {
      plan();
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::usage);
      return std::string(error.what()) + " | " + error.hint();
    }
    return "taken";
  };
  const std::string known = " | this mailroom knows the versions 0 to 2";
  CHECK(message([] { schema::plan_goto(three, {}, 3); }) == "there is no version 3" + known);
  CHECK(message([] { schema::plan_up(three, {.version = 1}, 9); }) == "there is no version 9" + known);
  CHECK(message([] { schema::plan_up(three, {.version = 2}, 1); }) ==
        "the schema has version 2, which is above 1 | mailroom migrate goto 1 goes down to it");
}

TEST_CASE(
    "a dirty state is explained by the migrations that lead to it, with the force command that ends it") {
  const auto explained = [](long version) {
    return schema::explain_dirty(three, {.version = version, .dirty = true});
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(explained(1), "failed in 1_second.up.sql or 2_third.down.sql.");
  has(explained(1), "run mailroom migrate force 0 (or mailroom migrate force 2 for the down), which");
  has(explained(0), "run mailroom migrate force none (or mailroom migrate force 1 for the down), which");
  has(explained(2), "failed in 2_third.up.sql.");
  has(explained(2), "run mailroom migrate force 1, which");
  has(explained(-1), "failed in 0_first.down.sql.");
  has(explained(-1), "run mailroom migrate force 0, which");
  has(explained(7), "this mailroom has no migration to or from that version");
}

TEST_CASE("a plan points to the migrations it was made from") {
  const auto steps = schema::plan_up(three, {});
  for (std::size_t i = 0; i < three.size(); ++i)
    CHECK(steps.at(i).migration == &three[i]);
}

TEST_CASE("nothing is planned from a dirty schema") {
  for (const long version : {0L, 1L, 2L, 7L}) {
    const auto expected = "the schema is marked dirty at version " + std::to_string(version);
    for (const auto& message : refusals(three, {.version = version, .dirty = true}))
      CHECK(message == expected);
  }
}

TEST_CASE("nothing is planned from a schema that is newer than this binary") {
  for (const long version : {3L, 4L, 1'000'000L, 20240101120000L}) {
    const auto expected =
        "the schema has version " + std::to_string(version) + ", and this mailroom knows versions up to 2";
    for (const auto& message : refusals(three, {.version = version}))
      CHECK(message == expected);
  }
}

TEST_CASE("the embedded migrations are numbered from 0 without gaps") {
  const auto& migrations = schema::embedded_migrations();
  REQUIRE_FALSE(migrations.empty());
  CHECK(migrations.front().name == "init");
  for (std::size_t i = 0; i < migrations.size(); ++i) {
    INFO(migrations[i].name);
    CHECK(migrations[i].version == static_cast<int>(i));
    CHECK_FALSE(migrations[i].name.empty());
    for (std::size_t j = 0; j < i; ++j)
      CHECK(migrations[j].name != migrations[i].name);
  }
}

TEST_CASE("every embedded migration begins with a comment, and ends with a newline") {
  for (const auto& migration : schema::embedded_migrations()) {
    for (const auto& text : {migration.up, migration.down}) {
      INFO(migration.version << "_" << migration.name << ": " << text.substr(0, 60));
      CHECK(text.substr(0, 3) == "-- ");
      CHECK(text.find('\n') > 20);
      CHECK(text.back() == '\n');
    }
    CHECK(migration.up != migration.down);
  }
}

TEST_CASE("up and down again runs every embedded migration") {
  const auto& migrations = schema::embedded_migrations();
  const auto up = schema::plan_up(migrations, {});
  REQUIRE(up.size() == migrations.size());
  const auto newest = up.back().version_after();
  REQUIRE(newest == static_cast<long>(migrations.size()) - 1);
  CHECK(schema::plan_up(migrations, {.version = newest}).empty());
  const auto down = schema::plan_down(migrations, {.version = newest}, 1000);
  REQUIRE(down.size() == up.size());
  CHECK_FALSE(down.back().version_after());
}

}  // namespace mailroom::test::migration_plan_test
