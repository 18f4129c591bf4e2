// The fake queue and PostgreSQL do the same, whatever is done to them. Where one of them is made to do
// something else, the comparison notices.

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "differential/comparison.hpp"
#include "differential/database_world.hpp"
#include "differential/fake_world.hpp"
#include "differential/mutations.hpp"
#include "fault/sabotage.hpp"
#include "support/catch.hpp"

namespace mailroom::test::differential_test {
namespace {

unsigned number_from(const char* variable, unsigned otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

/// MAILROOM_SEED is the first seed, and the only one unless MAILROOM_PLAYS says how many.
const unsigned first_seed = number_from("MAILROOM_SEED", 1);
const unsigned plays = number_from("MAILROOM_PLAYS", std::getenv("MAILROOM_SEED") == nullptr ? 12 : 1);

Trace play_real(const TestDatabase& database, const Steps& steps, const Trace& expected = {}) {
  DatabaseWorld world(database, steps.checks_all_gaps);
  return play(steps, world, expected);
}

Trace play_fake(const Steps& steps, const Trace& expected = {}, const MakeFakeQueue& make_queue = {}) {
  FakeWorld world(make_queue);
  return play(steps, world, expected);
}

const Sabotage& sabotage_of(const std::string& name) {
  const auto& all = sabotages();
  const auto known =
      std::find_if(all.begin(), all.end(), [&](const auto& sabotage) { return sabotage.name == name; });
  if (known == all.end()) throw std::logic_error("unknown: " + name);
  return *known;
}

/// Functions of a database that are changed during the life of this object.
class Sabotaged {
 public:
  Sabotaged(const TestDatabase& database, const Sabotage& sabotage) : connection_(database.connect()) {
    for (const auto& breakage : sabotage.breakages)
      sources_.push_back(connection_->run("SELECT pg_get_functiondef($1::regproc)", breakage.function)[0][0]
                             .as<std::string>());
    break_protocol(*connection_, sabotage);
  }
  ~Sabotaged() {
    for (const auto& source : sources_)
      connection_->run(source);
  }
  Sabotaged(const Sabotaged&) = delete;
  Sabotaged& operator=(const Sabotaged&) = delete;

 private:
  std::unique_ptr<db::Connection> connection_;
  std::vector<std::string> sources_;
};

bool is_noticed(const TestDatabase& database) {
  for (auto seed = first_seed; seed < first_seed + plays; ++seed) {
    const auto steps = draw_steps(seed);
    const auto expected = play_fake(steps);
    if (!difference(steps, "", play_real(database, steps, expected), "", expected).empty()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("the fake queue gives the replies of PostgreSQL and has its state, and no mutation of it does") {
  TestDatabase database;
  std::map<std::string, int> noticed;
  for (auto seed = first_seed; seed < first_seed + plays; ++seed) {
    const auto steps = draw_steps(seed);
    const auto real = play_real(database, steps);
    const auto different = difference(steps, "PostgreSQL", real, "the fake", play_fake(steps, real));
    if (!different.empty()) FAIL_CHECK("MAILROOM_SEED=" << seed << "\n" << different);
    for (const auto& [name, make] : mutations())
      noticed[name] += difference(steps, "", real, "", play_fake(steps, real, make)).empty() ? 0 : 1;
  }
  for (const auto& [name, make] : mutations()) {
    CAPTURE(name, noticed[name]);
    CHECK(noticed[name] > 0);
  }
}

TEST_CASE("a claim of PostgreSQL that is changed differs from the fake queue") {
  TestDatabase database;
  for (const auto* name :
       {"a cursor alone, without gaps", "the usual claim takes a stretch with a gap",
        "the usual claim forgets batches in flight", "a batch that its sender holds is taken for abandoned",
        "a pause is ignored", "every outcome is recorded as accepted",
        "a queue takes the tokens of every action", "a budget is debited twice",
        "listening, inserts still do not notify"}) {
    CAPTURE(name);
    const Sabotaged sabotaged(database, sabotage_of(name));
    CHECK(is_noticed(database));
  }
}

}  // namespace mailroom::test::differential_test
