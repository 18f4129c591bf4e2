// The harness of the faults breaks functions on purpose (scripts/test --faults --self-check), which takes
// half an hour. Here: each of these breakages still has a place in the functions of today.

#include "fault/sabotage.hpp"

#include "support/catch.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::sabotage_test {

TEST_CASE("every breakage of the self-check finds what it breaks") {
  TestDatabase database;
  const auto connection = database.connect();
  int broken = 0;
  for (const auto& sabotage : sabotages()) {
    INFO(sabotage.name);
    connection->run("BEGIN");
    CHECK_NOTHROW(break_protocol(*connection, sabotage));
    connection->run("ROLLBACK");
    ++broken;
  }
  CHECK(broken > 30);
}

}  // namespace mailroom::test::sabotage_test
