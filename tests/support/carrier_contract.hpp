#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <poll.h>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "delivery/carrier.hpp"
#include "support/catch.hpp"

namespace mailroom::test {

/// Messages of one batch that any carrier can carry: a line that is a mail's body too, with an envelope.
class ContractMessages {
 public:
  explicit ContractMessages(int count) {
    for (int i = 1; i <= count; ++i) {
      auto& body = bodies_.emplace_back(std::make_unique<std::string>(
          R"({"batch":1,"queue":"mailroom","tokens":[{"id":)" + std::to_string(i) + "}]}"));
      messages_.push_back({.id = 1000 + i,
                           .queue = "mailroom",
                           .batch = 1,
                           .attempt = 1,
                           .line = i,
                           .action = "activation",
                           .tokens = {i},
                           .message_id = "contract.1." + std::to_string(i) + ".00",
                           .body = *body,
                           .envelope = {.from = "sender@mail.example", .to = "user@mail.example"}});
    }
  }
  const std::vector<delivery::Message>& all() const { return messages_; }

 private:
  std::vector<std::unique_ptr<std::string>> bodies_;
  std::vector<delivery::Message> messages_;
};

/// Takes answers until there is one for each message, and checks that fd() announces them.
inline std::vector<delivery::Answer> all_answers(delivery::Carrier& carrier) {
  std::vector<delivery::Answer> answers;
  const auto end = steady_now() + std::chrono::seconds(60);
  while (carrier.unfinished() > 0 && steady_now() < end) {
    pollfd fd{carrier.fd(), POLLIN, 0};
    poll(&fd, 1, 100);
    const bool is_announced = fd.revents != 0;
    auto more = carrier.take();
    // An answer may come between the two.
    if (!is_announced && !more.empty()) {
      poll(&fd, 1, 0);
      CHECK((fd.revents != 0 || carrier.take().empty()));
    }
    answers.insert(answers.end(), more.begin(), more.end());
  }
  return answers;
}

/// What every carrier promises of messages that the receiver takes, or that it cannot be reached for.
/// `kind`: its name in carrier_kinds(), by which a test finds that each is held to this.
inline void check_carrier(std::string_view kind, delivery::Carrier& carrier, delivery::Verdict expected) {
  INFO(kind);
  REQUIRE_FALSE(carrier.endpoints().empty());
  for (const auto& name : carrier.endpoints()) {
    CHECK_FALSE(name.empty());
    CHECK(name.find("geheim") == std::string::npos);
  }
  CHECK(carrier.unfinished() == 0);
  CHECK(carrier.take().empty());
  const ContractMessages messages(20);
  for (const auto& message : messages.all())
    carrier.submit(message);
  CHECK(carrier.unfinished() == messages.all().size());
  std::set<std::int64_t> answered;
  for (const auto& answer : all_answers(carrier)) {
    INFO(answer.id << ": " << answer.reply);
    CHECK(answered.insert(answer.id).second);
    if (!answer.was_tried) continue;
    CHECK(delivery::verdict_name(answer.verdict) == std::string(delivery::verdict_name(expected)));
    CHECK(answer.ended != WallTime{});
    CHECK(answer.reply.find("geheim") == std::string::npos);
    CHECK_FALSE(answer.sink.empty());
  }
  CHECK(answered.size() == messages.all().size());
  CHECK(carrier.unfinished() == 0);
  CHECK(carrier.take().empty());
}

/// The receiver answers nothing: cancel() answers each message, and the carrier carries on.
inline void check_cancel(std::string_view kind, delivery::Carrier& carrier) {
  INFO(kind);
  const ContractMessages messages(5);
  for (const auto& message : messages.all())
    carrier.submit(message);
  const auto began = steady_now();
  carrier.cancel();
  std::map<std::int64_t, delivery::Verdict> verdicts;
  for (const auto& answer : carrier.take()) {
    CHECK(verdicts.emplace(answer.id, answer.verdict).second);
    CHECK(answer.verdict != delivery::Verdict::accepted);
    CHECK(answer.verdict != delivery::Verdict::rejected);
  }
  CHECK(verdicts.size() == messages.all().size());
  CHECK(carrier.unfinished() == 0);
  // Less than any time-out here.
  CHECK(steady_now() - began < std::chrono::seconds(20));
}

}  // namespace mailroom::test
