#include "delivery/domain_limits.hpp"

#include "support/catch.hpp"

namespace mailroom::test::domain_limits_test {
namespace {

constexpr TimePoint start{std::chrono::hours(1)};
constexpr WallTime wall{std::chrono::hours(1000)};

/// What the last of so many refusals in a row is about: true for the domain.
bool refuse(delivery::DomainLimits& limits, const std::string& domain) {
  bool is_about_domain = true;
  for (int i = 0; i < delivery::DomainLimits::row; ++i)
    is_about_domain = limits.refused(domain, "450 slow down", start, start, wall);
  return is_about_domain;
}

}  // namespace

TEST_CASE("a wish for a lower rate belongs to the recipient's domain until others are refused too") {
  delivery::DomainLimits limits;
  CHECK_FALSE(limits.wait("big.example", start));
  CHECK(refuse(limits, "big.example"));
  CHECK(limits.wait("big.example", start));
  CHECK_FALSE(limits.wait("other.example", start));
  for (std::size_t i = 2; i < delivery::DomainLimits::many; ++i)
    CHECK(limits.refused("big" + std::to_string(i) + ".example", "450 slow down", start, start, wall));
  CHECK_FALSE(limits.refused("last.example", "450 slow down", start, start, wall));
  CHECK_FALSE(limits.wait("big.example", start));
}

TEST_CASE("where no mail to another domain is accepted, it is the relay's rate") {
  delivery::DomainLimits limits;
  CHECK(refuse(limits, "big.example"));
  for (int i = 0; i < delivery::DomainLimits::alone; ++i)
    CHECK(limits.wait("big.example", start));
  limits.accepted("other.example", start, start);
  CHECK(refuse(limits, "big.example"));
  for (int i = 0; i < delivery::DomainLimits::alone; ++i)
    CHECK(limits.wait("big.example", start));
  CHECK_FALSE(limits.refused("big.example", "450 slow down", start, start, wall));
}

TEST_CASE("the mails of a domain come back one after the other, and the first of them in time leaves") {
  delivery::DomainLimits limits;
  refuse(limits, "big.example");
  const auto first = limits.wait("big.example", start);
  const auto second = limits.wait("big.example", start);
  REQUIRE((first && second));
  CHECK(*second > *first);
  CHECK_FALSE(limits.wait("big.example", start + *first));
  CHECK(limits.wait("big.example", start + *first));
}

TEST_CASE("what one process knows of a domain, another takes, for some minutes") {
  delivery::DomainLimits one;
  delivery::DomainLimits other;
  refuse(one, "big.example");
  other.take(one.json(wall), start);
  CHECK(other.json(wall) == one.json(wall));
  CHECK(other.wait("big.example", start));
  CHECK(one.json(wall + delivery::DomainLimits::kept + std::chrono::minutes(1)).empty());
  other.take(nlohmann::json::array(), start);
  CHECK_FALSE(other.wait("big.example", start));
}

TEST_CASE("single mailboxes that are refused beside others of their domain limit nobody") {
  delivery::DomainLimits limits;
  for (int i = 0; i < 20; ++i) {
    CHECK(limits.refused("big.example", "450 slow down", start, start, wall));
    limits.accepted("big.example", start, start);
    CHECK_FALSE(limits.wait("big.example", start));
  }
  CHECK(limits.json(wall).empty());
}

}  // namespace mailroom::test::domain_limits_test
