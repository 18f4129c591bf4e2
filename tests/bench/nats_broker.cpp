// A JetStream stream of three replicas, by libnats alone.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <nats/nats.h>
#include <semaphore>
#include <stdexcept>

#include "bench/brokers.hpp"
#include "support/subprocess.hpp"

namespace mailroom::bench {
namespace {

const char* const nats_address = "MAILROOM_TEST_NATS";
const char* const stream = "MAILROOM";

void require(natsStatus status, const char* what) {
  if (status != NATS_OK) throw std::runtime_error(fmt::format("{}: {}", what, natsStatus_GetText(status)));
}

/// What is in flight, and whether an acknowledgement was an error. libnats calls it from threads of its own.
struct Flight {
  std::counting_semaphore<Broker::in_flight> slots{Broker::in_flight};
  std::atomic<bool> failed = false;
};

void acknowledged(jsCtx*, natsMsg* message, jsPubAck*, jsPubAckErr* error, void* closure) {
  auto& flight = *static_cast<Flight*>(closure);
  if (error != nullptr) flight.failed = true;
  natsMsg_Destroy(message);
  flight.slots.release();
}

class NatsBroker final : public Broker {
 public:
  NatsBroker() {
    require(natsConnection_ConnectTo(&connection_, std::getenv(nats_address)), "connecting");
    jsOptions options;
    jsOptions_Init(&options);
    options.PublishAsync.AckHandler = acknowledged;
    options.PublishAsync.AckHandlerClosure = &flight_;
    require(natsConnection_JetStream(&jetstream_, connection_, &options), "JetStream");
  }
  ~NatsBroker() override {
    jsCtx_Destroy(jetstream_);
    natsConnection_Destroy(connection_);
  }
  NatsBroker(const NatsBroker&) = delete;
  NatsBroker& operator=(const NatsBroker&) = delete;

  void make_empty() override {
    jsErrCode code{};
    const auto status = js_DeleteStream(jetstream_, stream, nullptr, &code);
    if (status != NATS_OK && code != JSStreamNotFoundErr) require(status, "deleting the stream");
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    const char* subjects = "mailroom.>";
    config.Name = stream;
    config.Subjects = &subjects;
    config.SubjectsLen = 1;
    config.Replicas = 3;
    config.Duplicates = std::chrono::nanoseconds(std::chrono::hours(1)).count();
    const bool is_made = test::eventually(
        [&] { return js_AddStream(nullptr, jetstream_, &config, nullptr, &code) == NATS_OK; });
    if (!is_made) throw std::runtime_error("the stream cannot be made");
    // A stream without a leader is not there.
    if (!test::eventually([&] { return find_count() == 0; }))
      throw std::runtime_error("the stream is not empty");
  }

  std::int64_t count() override { return find_count(); }

  void publish(const std::vector<std::string>& lines) override {
    std::uint64_t number = 0;
    for (const auto& line : lines) {
      flight_.slots.acquire();
      publish(line, ++number);
    }
    for (std::size_t i = 0; i < in_flight; ++i)
      flight_.slots.acquire();
    flight_.slots.release(in_flight);
    if (flight_.failed) throw std::runtime_error("a line was not stored");
  }

 private:
  void publish(const std::string& line, std::uint64_t number) {
    natsMsg* message = nullptr;
    require(natsMsg_Create(&message, "mailroom.mailroom.activation", nullptr, line.data(),
                           static_cast<int>(line.size())),
            "making a message");
    const std::pair<const char*, std::string> header[]{{"Nats-Msg-Id", message_id(number)},
                                                       {"Content-Type", "application/json"},
                                                       {"Mailroom-Batch", std::to_string(number)},
                                                       {"Mailroom-Attempt", "1"},
                                                       {"Mailroom-Tokens", "10"}};
    for (const auto& [key, value] : header)
      require(natsMsgHeader_Set(message, key, value.c_str()), "setting a header");
    jsPubOptions options;
    jsPubOptions_Init(&options);
    options.MaxWait = 5'000;
    options.ExpectStream = stream;
    require(js_PublishMsgAsync(jetstream_, &message, &options), "publishing");
  }

  /// -1 if it cannot be asked.
  std::int64_t find_count() {
    jsStreamInfo* info = nullptr;
    jsErrCode code{};
    if (js_GetStreamInfo(&info, jetstream_, stream, nullptr, &code) != NATS_OK) return -1;
    const auto found = static_cast<std::int64_t>(info->State.Msgs);
    jsStreamInfo_Destroy(info);
    return found;
  }

  natsConnection* connection_ = nullptr;
  jsCtx* jetstream_ = nullptr;
  Flight flight_;
};

}  // namespace

BrokerKind nats_kind() {
  return {.name = "nats", .address = nats_address, .connect = [] { return std::make_unique<NatsBroker>(); }};
}

}  // namespace mailroom::bench
