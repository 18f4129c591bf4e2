// What consumers tell each other of their sinks.

#include <chrono>

#include "claim/queue_session.hpp"
#include "support/catch.hpp"
#include "support/outcome_rig.hpp"

namespace mailroom::test::shared_sinks_test {

TEST_CASE("what one consumer has learnt of a sink, others find under its name, whatever that has in it") {
  TestDatabase database;
  const auto one = attach_sender(database);
  const auto other = attach_sender(database);
  for (const auto* const name :
       {"relay:25", "a:4222,b:4222,c:4222", "sh -c \"a, b\"@host", "{a}", "back\\slash", "NULL"}) {
    CAPTURE(name);
    const auto now = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
    const claim::SinkState state{.name = name,
                                 .failures = 1,
                                 .since = now,
                                 .failed_at = now,
                                 .probe_at = now + std::chrono::minutes(1),
                                 .reason = "busy"};
    one->share({state}, {name}, std::nullopt);
    const auto known = other->share({}, {"another:25", name}, std::nullopt);
    REQUIRE(known.size() == 1);
    CHECK(known.front().name == name);
    CHECK(known.front().reason == "busy");
  }
}

}  // namespace mailroom::test::shared_sinks_test
