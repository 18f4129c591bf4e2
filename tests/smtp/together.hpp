// Mails that are delivered together over one connection.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "carriers/smtp/session/session.hpp"
#include "support/catch.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test {

using Play = std::function<RelayAnswer(const RelayMoment&)>;

/// Keeps a connection in use however busy this machine is.
inline smtp::RelayOptions kept() {
  auto options = impatient();
  options.rest_time = std::chrono::minutes(1);
  return options;
}

/// Gives `answer` at `step` of the mail to `recipient`.
inline Play to(const std::string& recipient, RelayStep step, RelayAnswer answer) {
  return [=](const RelayMoment& moment) {
    return moment.step == step && moment.recipient == recipient ? answer : RelayAnswer{};
  };
}

/// What became of mails that are delivered together, after two that are delivered alone, as a session needs
/// them.
struct Delivered {
  std::map<std::string, delivery::Verdict> verdicts;  ///< by the recipient
  std::map<std::string, std::string> texts;
  std::size_t untried = 0;
  std::size_t window = 0;  ///< before
  std::size_t window_after = 0;
};

inline Delivered deliver(smtp::RelaySession& relay, const std::vector<delivery::Message>& mails) {
  Delivered delivered;
  for (int i = 0; i < 2; ++i)
    REQUIRE(relay.deliver(mail_to("alone@mail.example")).verdict == delivery::Verdict::accepted);
  delivered.window = relay.window();
  relay.deliver(mails, [&](std::size_t i, const delivery::Answer& answer) {
    const auto& recipient = mails[i].envelope.to;
    INFO(recipient);
    CHECK(delivered.verdicts.emplace(recipient, answer.verdict).second);
    delivered.texts.emplace(recipient, text_of(answer));
    if (!answer.was_tried) ++delivered.untried;
  });
  CHECK(delivered.verdicts.size() == mails.size());
  delivered.window_after = relay.window();
  return delivered;
}

inline Delivered deliver(smtp::RelaySession& relay, const std::vector<std::string>& recipients) {
  std::vector<delivery::Message> mails;
  for (const auto& recipient : recipients)
    mails.push_back(mail_to(recipient));
  return deliver(relay, mails);
}

inline Delivered deliver(const TestRelay& server, const std::vector<std::string>& recipients) {
  smtp::RelaySession relay(url_of(server), kept());
  return deliver(relay, recipients);
}

/// How often the relay has taken a mail to `recipient`.
inline std::ptrdiff_t taken(const TestRelay& server, const std::string& recipient) {
  const auto mails = server.taken();
  return std::ranges::count(mails, recipient, &TakenMail::to);
}

inline const std::vector<std::string> three{"ada@mail.example", "bob@mail.example", "cyd@mail.example"};

}  // namespace mailroom::test
