// What carries lines to JetStream for mailroom collect --to nats://.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/threads.hpp"
#include "carriers/nats/answer.hpp"
#include "carriers/nats/connection.hpp"
#include "delivery/carrier.hpp"

namespace mailroom {

struct NatsPublishing {
  std::string stream;
  std::string subject;       ///< with {queue} and {action}
  std::string event_source;  ///< of CloudEvents; empty for none
  Milliseconds timeout{};
};

/// The carrier of lines to JetStream. Answers come on threads of libnats; a thread of its own connects anew
/// where libnats gives up.
class NatsPublisher final : public Carrier, private NatsListener {
 public:
  NatsPublisher(NatsTarget target, NatsPublishing publishing);
  ~NatsPublisher() override;
  NatsPublisher(const NatsPublisher&) = delete;
  NatsPublisher& operator=(const NatsPublisher&) = delete;

  void submit(Message message) override;
  int fd() const override { return ready_.fd(); }
  std::vector<Answer> take() override;
  std::size_t unfinished() const override { return unfinished_; }
  void cancel() override;
  std::vector<std::string> endpoints() const override { return {name()}; }
  std::string name() const { return target_.url.addresses(); }

  /// Connects for the first time; what came of it.
  BrokerFailure connect();
  /// What the server says of the stream; nullopt without a connection.
  std::optional<NatsStream> read_stream();

 private:
  using Instant = std::chrono::steady_clock::time_point;
  struct Sent {
    std::int64_t message;
    std::string subject;
    Instant at;
  };

  void on_answer(const natsMsg* message, const jsPubAck* ack, const jsPubAckErr* error) override;
  void on_lost(std::string why) override;
  void on_back() override;
  void on_closed(std::string why) override;
  void on_refused(std::string why) override;

  void keep_connected();
  void publish(NatsConnection& connection, const Message& message);
  /// These three with mutex_ held.
  void answer(const Sent& sent, NatsJudgement judgement);
  void answer_all(Verdict verdict, const std::string& why);
  std::shared_ptr<NatsConnection> usable_connection() const;

  NatsTarget target_;
  NatsPublishing publishing_;
  EventFd ready_;
  std::size_t unfinished_ = 0;  ///< of the thread that submits and takes
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<NatsConnection> connection_;  ///< null, or one that libnats keeps up
  bool is_closed_ = false;                      ///< libnats has given connection_ up
  bool ended_ = false;
  std::string server_;   ///< of the connection, or the first one
  std::string trouble_;  ///< why there is no connection
  std::unordered_map<const natsMsg*, Sent> sent_;
  std::vector<Answer> answers_;
  std::thread keeper_;
};

}  // namespace mailroom
