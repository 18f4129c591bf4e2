#include "broker/nats_rig.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/text.hpp"
#include "support/catch.hpp"

namespace mailroom::test {

using namespace std::chrono_literals;

namespace {

using Info = std::unique_ptr<jsStreamInfo, decltype(&jsStreamInfo_Destroy)>;

Info info_of(jsCtx* jetstream, const std::string& name) {
  jsStreamInfo* info = nullptr;
  jsErrCode code{};
  js_GetStreamInfo(&info, jetstream, name.c_str(), nullptr, &code);
  return {info, jsStreamInfo_Destroy};
}

std::string header_of(natsMsg* message, const char* key) {
  const char* value = nullptr;
  return natsMsgHeader_Get(message, key, &value) == NATS_OK ? value : "";
}

using StoredMessage = std::unique_ptr<natsMsg, decltype(&natsMsg_Destroy)>;

/// The messages of the stream; fewer if that takes too long.
std::vector<StoredMessage> messages_of(jsCtx* jetstream, const jsStreamInfo& info) {
  jsSubOptions options;
  jsSubOptions_Init(&options);
  options.Ordered = true;
  options.Stream = info.Config->Name;
  natsSubscription* subscription = nullptr;
  jsErrCode code{};
  std::vector<StoredMessage> messages;
  if (js_SubscribeSync(&subscription, jetstream, info.Config->Subjects[0], nullptr, &options, &code) !=
      NATS_OK)
    return messages;
  const std::unique_ptr<natsSubscription, decltype(&natsSubscription_Destroy)> owner(
      subscription, natsSubscription_Destroy);
  natsSubscription_SetPendingLimits(subscription, -1, -1);
  natsMsg* message = nullptr;
  while (messages.size() < info.State.Msgs &&
         natsSubscription_NextMsg(&message, subscription, 5'000) == NATS_OK)
    messages.emplace_back(message, natsMsg_Destroy);
  return messages;
}

/// Calls `visit` for each message of the stream. Servers that have just been started may take several tries.
template <typename Visit>
void each_message(jsCtx* jetstream, const std::string& name, Visit visit) {
  std::vector<StoredMessage> messages;
  const bool is_read = eventually([&] {
    const auto info = info_of(jetstream, name);
    if (info == nullptr) return false;
    messages = messages_of(jetstream, *info);
    return messages.size() == info->State.Msgs;
  });
  if (!is_read) throw std::runtime_error("the stream cannot be read");
  for (const auto& message : messages)
    visit(message.get());
}

}  // namespace

void require_ok(natsStatus status, const char* what) {
  if (status != NATS_OK) throw std::runtime_error(fmt::format("{}: {}", what, natsStatus_GetText(status)));
}

config::Settings nats_settings() {
  config::Settings settings;
  settings.sink.to = from_script("MAILROOM_TEST_NATS");
  settings.sink.stream = "MAILROOM";
  settings.sink.subject = "mailroom.{queue}.{action}";
  settings.sink.timeout = 30s;
  settings.collect.queues = {"mailroom"};
  return settings;
}

NatsReader::NatsReader() {
  natsOptions* options = nullptr;
  require_ok(natsOptions_Create(&options), "options");
  std::vector<std::string> urls;
  const auto addresses = from_script("MAILROOM_TEST_NATS").substr(7);
  for (const auto address : split(addresses, ','))
    urls.push_back("nats://" + std::string(address));
  std::vector<const char*> texts;
  for (const auto& url : urls)
    texts.push_back(url.c_str());
  natsOptions_SetServers(options, texts.data(), static_cast<int>(texts.size()));
  natsOptions_SetMaxReconnect(options, -1);
  natsOptions_SetReconnectWait(options, 100);
  natsOptions_SetPingInterval(options, 1000);
  if (std::getenv("MAILROOM_TEST_NATS_CA") != nullptr) {
    std::string password;
    std::ifstream(from_script("MAILROOM_TEST_NATS_PASSWORD_FILE")) >> password;
    natsOptions_SetSecure(options, true);
    natsOptions_LoadCATrustedCertificates(options, from_script("MAILROOM_TEST_NATS_CA").c_str());
    natsOptions_SetUserInfo(options, from_script("MAILROOM_TEST_NATS_USER").c_str(), password.c_str());
  }
  if (const auto* file = std::getenv("MAILROOM_TEST_NATS_CREDENTIALS"))
    natsOptions_SetUserCredentialsFromFiles(options, file, nullptr);
  natsStatus status = NATS_ERR;
  eventually([&] {
    status = natsConnection_Connect(&connection_, options);
    return status == NATS_OK;
  });
  natsOptions_Destroy(options);
  require_ok(status, "connect");
  require_ok(natsConnection_JetStream(&jetstream_, connection_, nullptr), "jetstream");
}

NatsReader::~NatsReader() {
  jsCtx_Destroy(jetstream_);
  natsConnection_Destroy(connection_);
}

void NatsReader::drop_stream(const std::string& name) {
  jsErrCode code{};
  eventually([&] {
    const auto status = js_DeleteStream(jetstream_, name.c_str(), nullptr, &code);
    return status == NATS_OK || code == JSStreamNotFoundErr;
  });
}

void NatsReader::make_stream(const StreamOptions& options) {
  drop_stream(options.name);
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  const char* subjects = options.subjects.c_str();
  config.Name = options.name.c_str();
  config.Subjects = &subjects;
  config.SubjectsLen = 1;
  config.Replicas = options.replicas;
  config.Storage = options.in_memory ? js_MemoryStorage : js_FileStorage;
  config.MaxMsgs = options.max_messages;
  config.MaxMsgSize = options.max_message_size;
  config.Discard = js_DiscardNew;
  config.Duplicates = std::chrono::nanoseconds(options.duplicate_window).count();
  natsStatus status = NATS_ERR;
  jsErrCode code{};
  eventually([&] {
    status = js_AddStream(nullptr, jetstream_, &config, nullptr, &code);
    return status == NATS_OK;
  });
  require_ok(status, "add stream");
  await_stream(options.name);
}

int NatsReader::leader(const std::string& name) {
  const auto info = info_of(jetstream_, name);
  if (info == nullptr || info->Cluster == nullptr || info->Cluster->Leader == nullptr) return 0;
  const std::string leader = info->Cluster->Leader;
  return leader.starts_with("node") ? leader.back() - '0' : 0;
}

void NatsReader::await_stream(const std::string& name) {
  const bool is_whole = eventually([&] {
    const auto info = info_of(jetstream_, name);
    if (info == nullptr || info->Cluster == nullptr || info->Cluster->Leader == nullptr) return false;
    for (int i = 0; i < info->Cluster->ReplicasLen; ++i) {
      if (info->Cluster->Replicas[i]->Offline || !info->Cluster->Replicas[i]->Current) return false;
    }
    return true;
  });
  if (!is_whole) throw std::runtime_error("the stream is not whole");
}

std::map<std::string, int> NatsReader::read(const std::string& name) {
  await_stream(name);
  std::map<std::string, int> found;
  each_message(jetstream_, name, [&](natsMsg* message) { ++found[header_of(message, "Nats-Msg-Id")]; });
  return found;
}

std::string NatsReader::lines(const std::string& name) {
  std::string text;
  each_message(jetstream_, name, [&](natsMsg* message) {
    text.append(natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))) += '\n';
  });
  return text;
}

std::string NatsReader::first_header(const std::string& name) {
  std::string text;
  each_message(jetstream_, name, [&](natsMsg* message) {
    if (!text.empty()) return;
    text = natsMsg_GetSubject(message);
    for (const auto* key : {"Nats-Msg-Id", "Nats-Expected-Stream", "Content-Type", "Mailroom-Batch",
                            "Mailroom-Attempt", "Mailroom-Tokens", "ce-specversion", "ce-id", "ce-source",
                            "ce-type", "ce-subject", "ce-time", "ce-datacontenttype"}) {
      if (const auto value = header_of(message, key); !value.empty())
        text += fmt::format("\n{}: {}", key, value);
    }
    text += "\n" +
            std::string(natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message)));
  });
  return text;
}

NatsRig::NatsRig(const StreamOptions& options) : settings(nats_settings()) {
  reader.make_stream(options);
}

void hand_over_to_two_servers(NatsRig& rig) {
  const auto carrier = rig.carrier();
  auto lines = make_lines(500);
  hand_over(*carrier, lines);
  require_each_once(lines, rig.reader.read());
  rig.nodes.kill(1);
  auto more = make_lines(500, 10, "mailroom.2.");
  hand_over(*carrier, more);
  for (const auto& line : more)
    CHECK(line.accepted);
}

}  // namespace mailroom::test
