// Sessions of the desk, guesses of passwords, and the URL of a proxy, by given times.

#include "desk/desk_page.hpp"
#include "desk/desk_sessions.hpp"
#include "desk/own_site.hpp"
#include "desk/sign_in.hpp"
#include "process/own_host.hpp"
#include "support/catch.hpp"

namespace mailroom::test::desk_test {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{std::chrono::hours(1000)};

std::shared_ptr<desk::DeskSession> session_of(const std::string& role) {
  auto session = std::make_shared<desk::DeskSession>();
  session->role = role;
  return session;
}

}  // namespace

TEST_CASE("a session of the desk ends when nothing was asked for, and at its end in any case") {
  desk::DeskSessions sessions({.idle = 30min, .longest = 2h});
  const auto secret = sessions.open(session_of("ada"), start);
  CHECK(secret.size() == 43);
  for (auto time = start; time < start + 2h; time += 29min) {
    REQUIRE(sessions.find(secret, time) != nullptr);
    CHECK(sessions.find(secret + "x", time) == nullptr);
    CHECK(sessions.find("", time) == nullptr);
  }
  CHECK(sessions.find(secret, start + 2h) == nullptr);
  CHECK(sessions.size() == 0);
  const auto idle = sessions.open(session_of("ada"), start);
  CHECK(sessions.find(idle, start + 30min) == nullptr);
  const auto forgotten = sessions.open(session_of("ada"), start);
  CHECK(forgotten != idle);
  sessions.end_late(start + 29min);
  CHECK(sessions.size() == 1);
  sessions.end_late(start + 30min);
  CHECK(sessions.size() == 0);
}

TEST_CASE("the sessions of the desk are limited, and those of one role push out its oldest") {
  desk::DeskSessions sessions({.idle = 1h, .longest = 1h, .sessions = 3, .sessions_of_role = 2});
  const auto first = sessions.open(session_of("ada"), start);
  const auto second = sessions.open(session_of("ada"), start + 1s);
  const auto third = sessions.open(session_of("ada"), start + 2s);
  CHECK(sessions.find(first, start + 3s) == nullptr);
  CHECK(sessions.find(second, start + 3s) != nullptr);
  CHECK(sessions.find(third, start + 3s) != nullptr);
  CHECK(!sessions.open(session_of("bob"), start + 3s).empty());
  CHECK(sessions.open(session_of("eve"), start + 3s).empty());
  sessions.end(second);
  CHECK(sessions.find(second, start + 3s) == nullptr);
  const auto eve = session_of("eve");
  CHECK(!sessions.open(eve, start + 3s).empty());
  sessions.end_session(*eve);
  CHECK(sessions.size() == 2);
}

TEST_CASE("wrong passwords of one client wait longer and longer, and end for a minute") {
  desk::DeskGuesses guesses;
  CHECK(guesses.add("a", start) == 1s);
  CHECK(guesses.add("a", start) == 2s);
  CHECK(guesses.add("a", start) == 4s);
  for (int i = 3; i < desk::DeskGuesses::most_in_a_minute; ++i) {
    CHECK_FALSE(guesses.are_too_many("a", start));
    CHECK(guesses.add("a", start) == 4s);
  }
  CHECK(guesses.are_too_many("a", start + 1min));
  CHECK_FALSE(guesses.are_too_many("b", start));
  CHECK_FALSE(guesses.are_too_many("a", start + 61s));
}

TEST_CASE("a URL of the desk is https and a host, or this host's") {
  CHECK(desk::parse_site("").host.empty());
  CHECK(desk::parse_site("https://Desk.example").host == "desk.example");
  CHECK(desk::parse_site("https://desk.example:8443/").host == "desk.example:8443");
  CHECK(desk::parse_site("https://desk.example").is_secure);
  CHECK_FALSE(desk::parse_site("http://localhost:8026").is_secure);
  for (const auto* url : {"desk.example", "http://desk.example", "https://", "https://desk.example/a",
                          "https://a@b", "https://a b", "ftp://desk.example"}) {
    INFO(url);
    CHECK_THROWS_AS(desk::parse_site(url), Error);
  }
}

TEST_CASE("the names of this host are exact") {
  for (const auto* host :
       {"localhost", "localhost:8026", "127.0.0.1", "127.0.0.1:1", "127.9.9.9", "[::1]", "[::1]:80"})
    CHECK(process::names_this_host(host));
  for (const auto* host :
       {"", "localhost.example", "127.0.0.1.example", "127.x", "128.0.0.1", "[::2]", "::1", "desk.example"})
    CHECK_FALSE(process::names_this_host(host));
}

TEST_CASE("foreign text in a page of the desk is text") {
  CHECK(desk::html_text("<b title=\"'&\">\x1b[1m") == "&lt;b title=&quot;&#39;&amp;&quot;&gt;?[1m");
  CHECK(desk::html_lines("a\n<b>") == "a\n&lt;b&gt;");
  const auto page =
      desk::desk_document({.title = "<i>", .body = "<p>ours</p>"}, {.role = "<u>", .csrf = "\"x"});
  for (const auto* hostile : {"<i>", "<u>", "\"\"x"})
    CHECK(page.find(hostile) == std::string::npos);
  CHECK(page.find("<p>ours</p>") != std::string::npos);
  CHECK(desk::desk_policy().find("unsafe") == std::string::npos);
  CHECK(desk::sign_in_page("", "", "\"><script>").body.find("<script") == std::string::npos);
}

}  // namespace mailroom::test::desk_test
