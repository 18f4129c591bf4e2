// What carries lines to JetStream for mailroom collect --to nats://.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "carriers/nats/answer.hpp"
#include "carriers/nats/connection.hpp"

namespace mailroom::nats {

/// The carrier of lines to JetStream. Answers come on threads of libnats; a thread of its own connects anew
/// where libnats gives up.
class NatsPublisher final : public carriers::BrokerPublisher, private NatsListener {
 public:
  NatsPublisher(NatsTarget target, carriers::BrokerPublishing publishing);
  ~NatsPublisher() override;
  NatsPublisher(const NatsPublisher&) = delete;
  NatsPublisher& operator=(const NatsPublisher&) = delete;

  void submit(delivery::Message message) override;
  void cancel() override;
  bool has_session() const override;

  /// Connects for the first time; what came of it.
  carriers::BrokerFailure connect();
  /// What the server says of the stream; nullopt without a connection.
  std::optional<NatsStream> read_stream();

 private:
  struct Sent {
    std::int64_t message;
    std::string subject;
    TimePoint at;
  };

  void on_answer(const natsMsg* message, const jsPubAck* ack, const jsPubAckErr* error) override;
  void on_lost(std::string why) override;
  void on_back() override;
  void on_closed(std::string why) override;
  void on_refused(std::string why) override;

  void keep_connected();
  void publish(NatsConnection& connection, const delivery::Message& message);
  /// These three with mutex_ held.
  void answer_line(const Sent& sent, NatsJudgement judgement);
  void answer_all(delivery::Verdict verdict, const std::string& why);
  std::shared_ptr<NatsConnection> usable_connection() const;

  NatsTarget target_;
  std::shared_ptr<NatsConnection> connection_;  ///< null, or one that libnats keeps up
  bool is_closed_ = false;                      ///< libnats has given connection_ up
  std::unordered_map<const natsMsg*, Sent> sent_;
  std::thread keeper_;
};

}  // namespace mailroom::nats
