// What an endpoint learns from answers: how many messages it takes at once, and when it is probed.

#include "delivery/endpoint.hpp"

#include "support/catch.hpp"

namespace mailroom::test::endpoint_test {
namespace {

constexpr TimePoint start{std::chrono::hours(1)};

/// Gives an endpoint `count` messages, and the answers of all of them together: that number `refused` is one
/// too many, and that the others are taken.
void answer_together(delivery::Endpoint& endpoint, int count, int refused) {
  const auto departure = endpoint.left(start, {}, {});
  for (int i = 1; i < count; ++i)
    endpoint.left(start, {}, {});
  endpoint.answers_came();
  for (int i = 0; i < count; ++i) {
    delivery::Answer answer{.id = i, .verdict = delivery::Verdict::accepted};
    if (i == refused) {
      answer.verdict = delivery::Verdict::deferred;
      answer.crowded = answer.waits_for_turn = true;
    }
    endpoint.learn(answer, {}, departure, start + Milliseconds(5), {}, 0);
  }
}

}  // namespace

TEST_CASE("one message too many lowers how many are given at once, whatever answers come with its own") {
  for (int refused = 0; refused < 3; ++refused) {
    CAPTURE(refused);
    delivery::Endpoint endpoint("relay:25", 4, {}, 1);
    answer_together(endpoint, 3, refused);
    CHECK(endpoint.connections(start + Milliseconds(5)) == 2);
    CHECK_FALSE(endpoint.pace().limit());
  }
}

TEST_CASE("a message that is too many alone lowers the rate") {
  delivery::Endpoint endpoint("relay:25", 4, {}, 1);
  answer_together(endpoint, 1, 0);
  CHECK(endpoint.connections(start + Milliseconds(5)) == 4);
  CHECK(endpoint.pace().limit());
}

TEST_CASE("a probe that comes back untried leaves the next one its time") {
  const WallTime wall{std::chrono::hours(1)};
  delivery::Endpoint endpoint("relay:25", 4, {}, 1);
  delivery::Answer answer{.verdict = delivery::Verdict::unavailable};
  const auto first = endpoint.left(start, wall, std::chrono::minutes(1));
  endpoint.learn(answer, {}, first, start, wall, 0);
  REQUIRE(endpoint.leave(wall) == delivery::Endpoint::Leave::none);
  const auto due = wall + std::chrono::seconds(2);
  REQUIRE(endpoint.leave(due) == delivery::Endpoint::Leave::given);
  const auto probe = endpoint.left(start, due, std::chrono::minutes(1));
  REQUIRE(endpoint.leave(due) == delivery::Endpoint::Leave::later);
  endpoint.came_back_untried(probe);
  CHECK(endpoint.leave(due) == delivery::Endpoint::Leave::given);
}

TEST_CASE("after a refusal that may be about some, thirty other messages are probes at once") {
  WallTime wall{std::chrono::hours(1)};
  delivery::Endpoint endpoint("relay:25", 4, {}, 1);
  const auto refuse = [&](delivery::VariesWith varies_with) {
    delivery::Answer answer{.code = 550, .refusal = "550 no", .varies_with = varies_with};
    wall += Milliseconds(1);
    endpoint.learn(answer, {.sender = "a"}, endpoint.left(start, wall, {}), start, wall, 0);
    return endpoint.leave(wall) == delivery::Endpoint::Leave::given;
  };
  for (int i = 0; i < 30; ++i)
    REQUIRE(refuse(delivery::VariesWith::sender));
  CHECK_FALSE(refuse(delivery::VariesWith::sender));
  wall += std::chrono::seconds(2);
  CHECK_FALSE(refuse(delivery::VariesWith::sender));
  delivery::Endpoint other("relay:25", 4, {}, 1);
  std::swap(endpoint, other);
  CHECK_FALSE(refuse(delivery::VariesWith::nothing));
}

TEST_CASE("what waits leaves beside a probe only while others may be taken") {
  const WallTime wall{std::chrono::hours(1)};
  delivery::Endpoint endpoint("relay:25", 4, {}, 1);
  delivery::Answer answer{.code = 550, .refusal = "550 no", .varies_with = delivery::VariesWith::message};
  endpoint.learn(answer, {}, endpoint.left(start, wall, {}), start, wall, 0);
  endpoint.left(start, wall, std::chrono::minutes(1));
  CHECK(endpoint.leave(wall) == delivery::Endpoint::Leave::given);
  delivery::Answer down{.verdict = delivery::Verdict::unavailable};
  endpoint.learn(down, {}, endpoint.left(start, wall, {}), start, wall, 0);
  endpoint.left(start, wall + std::chrono::minutes(1), std::chrono::minutes(1));
  CHECK(endpoint.leave(wall + std::chrono::minutes(1)) == delivery::Endpoint::Leave::later);
}

}  // namespace mailroom::test::endpoint_test
