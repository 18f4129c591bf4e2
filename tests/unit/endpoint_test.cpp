// What an endpoint learns from answers: how many messages it takes at once, and when it is probed.

#include "delivery/endpoint.hpp"

#include "support/catch.hpp"

namespace mailroom::test::endpoint_test {
namespace {

constexpr TimePoint start{std::chrono::hours(1)};

/// Gives an endpoint `count` messages, and the answers of all of them together: that number `refused` is one
/// too many, and that the others are taken.
void answer_together(delivery::Endpoint& endpoint, int count, int refused) {
  const auto departure = endpoint.left(start, {}, {}, {});
  for (int i = 1; i < count; ++i)
    endpoint.left(start, {}, {}, {});
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
  const auto first = endpoint.left(start, wall, std::chrono::minutes(1), {});
  endpoint.learn(answer, {}, first, start, wall, 0);
  REQUIRE(endpoint.leave(wall, {}) == delivery::Endpoint::Leave::none);
  const auto due = wall + std::chrono::seconds(2);
  REQUIRE(endpoint.leave(due, {}) == delivery::Endpoint::Leave::given);
  const auto probe = endpoint.left(start, due, std::chrono::minutes(1), {});
  REQUIRE(endpoint.leave(due, {}) == delivery::Endpoint::Leave::later);
  endpoint.came_back_untried(probe);
  CHECK(endpoint.leave(due, {}) == delivery::Endpoint::Leave::given);
}

namespace {

constexpr WallTime midnight{std::chrono::hours(1)};
const delivery::Likeness refused{.sender = "a", .kind = "x"};
const delivery::Likeness unlike{.sender = "a", .kind = "y"};

/// An endpoint has refused a message, and the answer varies so.
delivery::Endpoint refusing(delivery::VariesWith varies_with) {
  delivery::Endpoint endpoint("relay:25", 4, {}, 1);
  delivery::Answer answer{.code = 550, .refusal = "550 no", .varies_with = varies_with};
  endpoint.learn(answer, {.likeness = refused}, endpoint.left(start, midnight, {}, refused), start, midnight,
                 0);
  REQUIRE(endpoint.breaker().is_open());
  return endpoint;
}

}  // namespace

TEST_CASE(
    "after a refusal that may be about some, one unlike the refused ones leaves, and most of the others wait") {
  using Leave = delivery::Endpoint::Leave;
  auto endpoint = refusing(delivery::VariesWith::message);
  CHECK_FALSE(endpoint.time_to_probe(midnight));
  int tried = 0;
  for (int i = 0; i < 1000; ++i) {
    if (endpoint.leave(midnight, refused) == Leave::given) {
      ++tried;
      endpoint.came_back_untried(endpoint.left(start, midnight, {}, refused));
    } else {
      REQUIRE(endpoint.leave(midnight, refused) == Leave::aside);
      CHECK(endpoint.set_aside(midnight, refused) == std::chrono::seconds(10));
    }
  }
  CHECK(tried == delivery::ProbeChoice::at_once + 5);
  REQUIRE(endpoint.leave(midnight, unlike) == Leave::given);
  // It is no probe that others wait for.
  const auto departure = endpoint.left(start, midnight, {}, unlike);
  CHECK(endpoint.leave(midnight, unlike) == Leave::given);
  delivery::Answer accepted{.verdict = delivery::Verdict::accepted, .code = 250};
  endpoint.learn(accepted, {.likeness = unlike}, departure, start, midnight, 0);
  CHECK_FALSE(endpoint.breaker().is_open());
  CHECK(endpoint.leave(midnight, refused) == Leave::given);
}

TEST_CASE("where only the sender decides, another recipient shows nothing") {
  const auto endpoint = refusing(delivery::VariesWith::sender);
  CHECK(endpoint.leave(midnight, {.sender = "b", .kind = "x"}) == delivery::Endpoint::Leave::given);
  auto full = refusing(delivery::VariesWith::sender);
  for (int i = 0; i < 2; ++i)
    CHECK(full.set_aside(midnight, unlike) == std::chrono::seconds(10));
  CHECK(full.leave(midnight, unlike) == delivery::Endpoint::Leave::aside);
}

TEST_CASE("a refusal that meets every message, and a search without end, leave the endpoint to its breaker") {
  using Leave = delivery::Endpoint::Leave;
  const auto down = refusing(delivery::VariesWith::nothing);
  CHECK(down.leave(midnight, unlike) == Leave::none);
  CHECK(down.time_to_probe(midnight) == std::chrono::seconds(1));
  auto endpoint = refusing(delivery::VariesWith::message);
  for (int i = 0; i < delivery::ProbeChoice::longest_search; ++i)
    endpoint.set_aside(midnight, refused);
  CHECK(endpoint.leave(midnight, unlike) == Leave::none);
  CHECK(endpoint.time_to_probe(midnight) == std::chrono::seconds(1));
  CHECK(endpoint.leave(midnight + std::chrono::seconds(1), refused) == Leave::given);
}

TEST_CASE("one that is tried out of turn neither delays the probe nor hides that the endpoint is down") {
  using Leave = delivery::Endpoint::Leave;
  auto endpoint = refusing(delivery::VariesWith::message);
  const auto try_one = [&](delivery::VariesWith varies_with) {
    delivery::Answer answer{.code = 550, .refusal = "550 no", .varies_with = varies_with};
    endpoint.learn(answer, {.likeness = unlike}, endpoint.left(start, midnight, {}, unlike), start, midnight,
                   0);
  };
  for (int i = 0; i < 10; ++i)
    try_one(delivery::VariesWith::message);
  CHECK(endpoint.breaker().failures == 1);
  CHECK(endpoint.leave(midnight, {.sender = "a", .kind = "z"}) == Leave::given);
  try_one(delivery::VariesWith::nothing);
  CHECK(endpoint.leave(midnight, {.sender = "a", .kind = "z"}) == Leave::none);
}

TEST_CASE("what many senders are told while one is accepted stops nobody, unless that one is told it too") {
  auto endpoint = refusing(delivery::VariesWith::sender);
  const auto answer_to = [&](const std::string& sender, bool is_taken) {
    delivery::Answer answer{.code = 550, .refusal = "550 no", .varies_with = delivery::VariesWith::sender};
    if (is_taken) answer = {.verdict = delivery::Verdict::accepted, .code = 250};
    const delivery::Likeness likeness{.sender = sender, .kind = "x"};
    endpoint.learn(answer, {.likeness = likeness}, endpoint.left(start, midnight, {}, likeness), start,
                   midnight, 0);
    return answer.verdict;
  };
  answer_to("good", true);
  REQUIRE_FALSE(endpoint.breaker().is_open());
  for (int i = 0; i < 20; ++i) {
    CHECK(answer_to("bad" + std::to_string(i), false) == delivery::Verdict::deferred);
    CHECK_FALSE(endpoint.breaker().is_open());
  }
  CHECK(answer_to("good", false) == delivery::Verdict::unavailable);
  CHECK(endpoint.breaker().is_open());
}

}  // namespace mailroom::test::endpoint_test
