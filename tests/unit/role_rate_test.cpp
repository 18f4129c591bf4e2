// What clients are told of the limit of a role.

#include "http_door/role_rate.hpp"

#include "support/catch.hpp"

namespace mailroom::test::role_rate_test {

using namespace std::chrono_literals;

TEST_CASE("the headers of a limit are whole numbers, and follow what is used") {
  const TimePoint now{1000h};
  const http_door::RoleRate fresh{.mails = 1000, .period = 1h, .used_until = now - 5min};
  CHECK(
      http_door::rate_headers(fresh, now) ==
      "ratelimit-limit: 1000\r\nratelimit-remaining: 1000\r\nratelimit-reset: 0\r\nratelimit-policy: 1000;w=3600\r\n");
  // A mail takes 3.6 s.
  const http_door::RoleRate one{.mails = 1000, .period = 1h, .used_until = now + 3600ms};
  CHECK(http_door::rate_headers(one, now).find("remaining: 999\r\nratelimit-reset: 4\r\n") !=
        std::string::npos);
  const http_door::RoleRate all{.mails = 1000, .period = 1h, .used_until = now + 1h};
  CHECK(http_door::rate_headers(all, now).find("remaining: 0\r\nratelimit-reset: 3600\r\n") !=
        std::string::npos);
}

TEST_CASE("after a refusal nothing remains until it may be asked again") {
  const TimePoint now{1000h};
  const http_door::RoleRate stale{.mails = 2, .period = 1h, .used_until = now};
  const auto after = http_door::used_up(stale, now, 600s);
  CHECK(http_door::rate_headers(after, now).find("remaining: 0\r\n") != std::string::npos);
  CHECK(http_door::rate_headers(after, now + 601s).find("remaining: 1\r\n") != std::string::npos);
}

}  // namespace mailroom::test::role_rate_test
