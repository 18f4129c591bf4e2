#include "delivery/delivery_log.hpp"

#include <fmt/format.h>
#include <sstream>

#include "support/catch.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::delivery_log_test {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

namespace {

constexpr delivery::DeliveryWords mail_words{.side = "relay", .item = "mail", .messages = "mails"};

struct Trial {
  std::ostringstream text;
  Log log{{.level = LogLevel::info, .format = LogFormat::logfmt}, text};
  delivery::DeliveryLog deliveries{log};
  TimePoint now{1h};

  /// The lines since the last call, without times.
  Lines lines() {
    Lines all;
    for (const auto& line : lines_of(text.str()))
      all.push_back(line.substr(line.find("level=") + 6));
    text.str({});
    return all;
  }
  Lines fails(const std::string& reason, bool others_work = false) {
    deliveries.unavailable(mail_words, "a:25", reason, others_work, now);
    return lines();
  }
  Lines works() {
    deliveries.available(mail_words, "a:25", now);
    return lines();
  }
  Lines ends(fate::Outcome state, int code, const std::string& reply) {
    deliveries.outcome(
        mail_words, {.token = 7, .state = state, .attempts = code == 0 ? 0 : 1, .code = code, .reply = reply},
        now);
    return lines();
  }
};

}  // namespace

TEST_CASE("a relay that does not answer is named after half a minute, and so is the end of the wait") {
  Trial trial;
  const auto began = trial.now;
  const auto waits = [&](Milliseconds lasts) {
    trial.deliveries.waits(mail_words, "a:25", began, began + lasts);
    return trial.lines();
  };
  CHECK(waits(29s).empty());
  CHECK(waits(30s) ==
        Lines{"warn msg=\"the relay does not answer, and its mails wait for that\" relay=a:25 for=30s"});
  CHECK(waits(10min).empty());
  CHECK(waits(11min).size() == 1);
  const auto ends = [&] {
    trial.deliveries.waits_no_longer(mail_words, began + 12min);
    return trial.lines();
  };
  CHECK(ends() == Lines{"info msg=\"the wait for the relay is over\" relay=a:25 after=12m"});
  CHECK(ends().empty());
}

TEST_CASE("an outage is logged with its first reason and each other one, and so is its end") {
  Trial trial;
  CHECK(trial.works().empty());
  CHECK(trial.fails("Couldn't connect to server") ==
        Lines{"warn msg=\"the relay is unavailable, its mails wait in the queue\" relay=a:25 "
              "reason=\"Couldn't connect to server\""});
  trial.now += 30s;
  CHECK(trial.fails("Couldn't connect to server").empty());
  trial.now += 30s;
  CHECK(trial.fails("535 5.7.8 authentication failed") ==
        Lines{"warn msg=\"the relay is unavailable for another reason\" relay=a:25 for=1m reason=\"535 5.7.8 "
              "authentication failed\""});
  CHECK(trial.fails("535 5.7.8 authentication failed").empty());
  trial.now += 10min;
  CHECK(
      trial.fails("535 5.7.8 authentication failed") ==
      Lines{
          "warn msg=\"the relay is still unavailable\" relay=a:25 for=11m reason=\"535 5.7.8 authentication "
          "failed\""});
  CHECK(trial.works() == Lines{"info msg=\"the relay is available again\" relay=a:25 after=11m"});
  CHECK(trial.works().empty());
}

TEST_CASE("where another relay takes the mails, the log says so") {
  Trial trial;
  CHECK(trial.fails("down", true) ==
        Lines{"warn msg=\"a relay is unavailable, its mails go to another relay\" relay=a:25 reason=down"});
}

TEST_CASE("refused mails are logged once for each reason, and never one a mail") {
  Trial trial;
  using enum fate::Outcome;
  CHECK(
      trial.ends(rejected, 550, "5.1.1 <a@b.example> no such user") ==
      Lines{
          "warn msg=\"mail not accepted\" token=7 state=rejected reason=\"550 5.1.1 <***@***> no such user\""});
  CHECK(trial.ends(rejected, 550, "5.1.1 <c@d.example> no such user").empty());
  CHECK(trial.ends(deferred, 451, "4.7.1 greylisted").size() == 1);
  CHECK(trial.ends(unknown, 0, "no answer").size() == 1);
  trial.now += 9min;
  CHECK(trial.ends(deferred, 451, "4.7.1 greylisted").empty());
  trial.now += 1min;
  CHECK(trial.ends(deferred, 451, "4.7.1 greylisted") ==
        Lines{"info msg=\"mail not accepted yet\" token=7 state=deferred reason=\"451 4.7.1 greylisted\""});
  // One that cannot be written yet.
  CHECK(trial.ends(deferred, 0, "send.link is not set") ==
        Lines{"info msg=\"mail not accepted yet\" token=7 state=deferred reason=\"send.link is not set\""});
  CHECK(trial.ends(deferred, 0, "send.link is not set").empty());
  // What was not tried, the totals count: the reply was about the relay.
  CHECK(trial.ends(deferred, 0, "").empty());
  CHECK(trial.ends(accepted, 250, "ok").empty());
  CHECK(trial.ends(expired, 0, "").empty());
  CHECK(trial.ends(cancelled, 0, "suspended").empty());
}

TEST_CASE("a relay with other words for each mail gets a few lines a minute") {
  Trial trial;
  std::size_t lines = 0;
  for (int i = 0; i < 1000; ++i)
    lines += trial.ends(fate::Outcome::rejected, 550, std::string(static_cast<std::size_t>(i), 'x')).size();
  CHECK(lines == 5);
  trial.now += 1min;
  CHECK(trial.ends(fate::Outcome::rejected, 550, "another").size() == 1);
}

TEST_CASE("reasons are compared without codes, ids and addresses") {
  for (const auto& [reason, kind] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {"Couldn't connect to server", "Couldn't connect to server"},
           {"535 5.7.8 authentication failed", "535 authentication failed"},
           {"550 5.1.1 <a@b.example>: no such user, 4Z1", "550 no such user,"},
           {"timed out after 5001 ms", "timed out after ms"},
           {"exited with status 3", "exited with status 3"}}) {
    INFO(reason);
    CHECK(delivery::kind_of_reason(reason) == kind);
  }
}

}  // namespace mailroom::test::delivery_log_test
