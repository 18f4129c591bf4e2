#include "broker/nats_witness.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <stdexcept>

#include "base/json.hpp"
#include "base/text.hpp"
#include "broker/nats_rig.hpp"
#include "support/catch.hpp"

namespace mailroom::test {
namespace {

natsSubscription* subscribe(natsConnection* connection, const char* subjects) {
  natsSubscription* subscription = nullptr;
  require_ok(natsConnection_SubscribeSync(&subscription, connection, subjects), subjects);
  require_ok(natsSubscription_SetPendingLimits(subscription, -1, -1), subjects);
  return subscription;
}

/// Calls `visit` for each message that has come.
template <typename Visit>
void take(natsSubscription* subscription, Visit visit) {
  natsMsg* message = nullptr;
  while (natsSubscription_NextMsg(&message, subscription, 0) == NATS_OK) {
    const std::unique_ptr<natsMsg, decltype(&natsMsg_Destroy)> owner(message, natsMsg_Destroy);
    visit(message);
  }
}

bool names_a_sequence(natsMsg* answer) {
  const std::string text(natsMsg_GetData(answer), static_cast<std::size_t>(natsMsg_GetDataLength(answer)));
  const auto json = try_parse_json(text);
  return json.is_object() && !json.contains("error") && json.value("stream", "") == "MAILROOM" &&
         json.value("seq", 0) > 0;
}

}  // namespace

NatsWitness::NatsWitness() {
  const auto addresses = from_script("MAILROOM_TEST_NATS").substr(7);
  for (const auto address : split(addresses, ',')) {
    natsOptions* options = nullptr;
    require_ok(natsOptions_Create(&options), "options");
    const std::unique_ptr<natsOptions, decltype(&natsOptions_Destroy)> owner(options, natsOptions_Destroy);
    natsOptions_SetURL(options, ("nats://" + std::string(address)).c_str());
    natsOptions_SetIgnoreDiscoveredServers(options, true);
    auto& seat = seats_.emplace_back();
    require_ok(natsConnection_Connect(&seat.connection, options), "connect");
    seat.published = subscribe(seat.connection, "mailroom.>");
    seat.answers = subscribe(seat.connection, "_INBOX.>");
    require_ok(natsConnection_Flush(seat.connection), "flush");
  }
}

NatsWitness::~NatsWitness() {
  for (const auto& seat : seats_) {
    natsSubscription_Destroy(seat.published);
    natsSubscription_Destroy(seat.answers);
    natsConnection_Destroy(seat.connection);
  }
}

std::set<std::string> NatsWitness::acknowledged() const {
  std::map<std::string, std::string> ids;  // by the subject that an answer goes to
  std::set<std::string> answered;
  for (const auto& seat : seats_) {
    require_ok(natsConnection_Flush(seat.connection), "flush");
    take(seat.published, [&](natsMsg* message) {
      const char* id = nullptr;
      if (natsMsgHeader_Get(message, "Nats-Msg-Id", &id) == NATS_OK) ids[natsMsg_GetReply(message)] = id;
    });
    take(seat.answers, [&](natsMsg* answer) {
      if (names_a_sequence(answer)) answered.insert(natsMsg_GetSubject(answer));
    });
  }
  std::set<std::string> acknowledged;
  for (const auto& subject : answered) {
    const auto found = ids.find(subject);
    if (found != ids.end()) acknowledged.insert(found->second);
  }
  return acknowledged;
}

void require_acknowledged(const std::vector<TestLine>& lines, const std::set<std::string>& acknowledged) {
  std::vector<std::string> open;
  std::vector<std::string> made_up;
  std::vector<std::string> unanswered;
  for (const auto& line : lines) {
    if (!line.accepted) open.push_back(line.message_id);
    if (line.accepted && !acknowledged.contains(line.message_id)) made_up.push_back(line.message_id);
    if (line.answers.size() != static_cast<std::size_t>(line.submitted))
      unanswered.push_back(line.message_id);
  }
  CHECK(open == std::vector<std::string>());
  CHECK(made_up == std::vector<std::string>());
  CHECK(unanswered == std::vector<std::string>());
}

void warn_of_losses(const config::Settings& settings, const std::vector<TestLine>& lines,
                    const std::map<std::string, int>& found) {
  std::vector<std::string> lost;
  std::vector<std::string> repeated;
  for (const auto& line : lines) {
    const auto place = found.find(line.message_id);
    if (place == found.end()) lost.push_back(line.message_id + ": " + line.answers.back().reply);
    if (place != found.end() && place->second > 1) repeated.push_back(line.message_id);
  }
  if (lost.empty() && repeated.empty()) return;
  WARN(fmt::format("{}: it acknowledged {} lines that it does not have ({}), and stored {} again ({})",
                   nats::check_nats(settings)[0].reason, lost.size(), fmt::join(lost, "; "), repeated.size(),
                   fmt::join(repeated, ", ")));
}

}  // namespace mailroom::test
