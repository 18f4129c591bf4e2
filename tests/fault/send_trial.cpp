#include "fault/send_trial.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "fault/message_oracle.hpp"

namespace mailroom::test {
namespace {

TestRelay::Options relay_options(const SendTrial::Options& options, Notifying notifying) {
  auto relay = options.relay;
  relay.offers_pipelining = options.pipelining;
  if (options.pipelining && notifying == Notifying::when_listening) relay.chunks = Chunks::taken;
  return relay;
}

}  // namespace

SendTrial::SendTrial(Cluster& cluster, const Plan& plan, Options options)
    : DeliveryTrial(cluster, plan,
                    {.consumers = options.senders,
                     .writers = options.writers,
                     .producers = options.producers,
                     .patience = options.patience}),
      options_(std::move(options)),
      relay_(relay_options(options_, plan.notifying)) {
  begin();
}

std::unique_ptr<TestConsumer> SendTrial::hire() const {
  auto relays = relay_.url(options_.relay.user);
  if (options_.first_relay != nullptr) relays = options_.first_relay->url() + "," + relays;
  return std::make_unique<TestSender>(
      conninfo(), relays, std::vector<std::string>{"--batch-limit", std::to_string(options_.limit)},
      options_.environment);
}

std::vector<TakenMail> SendTrial::taken() const {
  auto mails = relay_.taken();
  if (options_.first_relay == nullptr) return mails;
  const auto others = options_.first_relay->taken();
  mails.insert(mails.end(), others.begin(), others.end());
  return mails;
}

bool SendTrial::delivers_again() const {
  const auto before = taken().size();
  // A relay that was down for long is tried again every 30 s.
  return eventually([&] { return taken().size() > before; }, std::chrono::seconds(120));
}

std::map<std::int64_t, int> SendTrial::judge_taken() {
  auto commands = relay_.commands();
  if (options_.first_relay != nullptr)
    std::ranges::move(options_.first_relay->commands(), std::back_inserter(commands));
  for (const auto& command : commands) {
    const auto from = command.find("RCPT TO:<");
    if (from != std::string::npos) seen_.insert(command.substr(from + 9, command.rfind('>') - from - 9));
  }
  std::map<std::int64_t, std::vector<TakenMail>> mails;
  auto tokens = tokens_of_messages(*connect());
  for (auto& mail : taken()) {
    const auto message = message_of(mail);
    const auto token = message > 0 ? tokens[{message, mail.to}] : token_id_of(mail);
    mails[token].push_back(std::move(mail));
  }
  std::map<std::int64_t, int> times;
  int unlike = 0;
  for (const auto& [token, of_token] : mails) {
    const auto& copies = of_token;
    times[token] = static_cast<int>(copies.size());
    const bool are_the_same = std::ranges::all_of(copies, [&](const auto& mail) {
      return mail.message == copies.front().message && mail.to == copies.front().to;
    });
    unlike += are_the_same ? 0 : 1;
  }
  expect(unlike == 0, fmt::format("two mails about a token have the same bytes ({} have not)", unlike));
  if (message_notes() != nullptr) judge_producers(*message_notes());
  return times;
}

void SendTrial::judge_producers(const MessageNotes& notes) {
  const auto found = judge_messages(*connect(), notes, taken());
  auto& tally = outcome_.tally;
  tally.lost += found.lost;
  tally.strange += found.rolled_back + found.revoked;
  tally.repeated += found.twice;
  note(
      fmt::format("{} mails of messages asked for, {} messages cancelled", found.committed, found.cancelled));
  expect(found.committed > 0 && found.cancelled > 0, "producers have asked and cancelled");
  expect(found.lost == 0, fmt::format("every message is sent ({} mails are not)", found.lost));
  expect(found.rolled_back == 0,
         fmt::format("no message that was rolled back is sent ({} are)", found.rolled_back));
  expect(found.revoked == 0,
         fmt::format("no message that was cancelled or replaced is sent ({} mails are)", found.revoked));
  expect(found.twice == 0,
         fmt::format("each message and each key is one mail ({} more are sent)", found.twice));
}

bool is_chosen(const RelayMoment& moment, RelayStep step, int share) {
  return moment.step == step &&
         std::hash<std::string>()(moment.recipient) % static_cast<std::size_t>(share) == 0;
}

}  // namespace mailroom::test
