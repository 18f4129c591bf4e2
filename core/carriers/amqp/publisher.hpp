// What carries lines to RabbitMQ for mailroom collect --to amqp://.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/threads.hpp"
#include "carriers/amqp/connection.hpp"

namespace mailroom::amqp {

constexpr auto amqp_not_stored = "the server could not store it (basic.nack)";

/// The carrier of lines to RabbitMQ. librabbitmq is for one thread, so one publishes and reads the answers.
class AmqpPublisher final : public carriers::BrokerPublisher {
 public:
  AmqpPublisher(AmqpTarget target, carriers::BrokerPublishing publishing);
  ~AmqpPublisher() override;
  AmqpPublisher(const AmqpPublisher&) = delete;
  AmqpPublisher& operator=(const AmqpPublisher&) = delete;

  void submit(delivery::Message message) override;
  void cancel() override;
  bool has_session() const override;

  /// Starts to publish, over `connection` if it is not null; otherwise `why` says why there is none yet.
  void start(std::unique_ptr<AmqpConnection> connection, const std::string& why);

 private:
  struct Waiting {
    delivery::Message message;
    std::string body;  ///< a copy: a line may be answered while it is being written
  };
  struct Sent {
    std::int64_t message;
    std::string message_id;
    std::size_t size;
    TimePoint at;
    std::string returned{};  ///< why the server could not route it; it confirms it all the same
  };

  void work();
  bool has_ended() const;
  /// False, after a pause, if no server lets mailroom in.
  bool connect();
  void use(std::unique_ptr<AmqpConnection> connection);
  /// Publishes what waits and reads what has come; waits for more of either.
  void serve();
  bool publish(Waiting& waiting);
  bool read_frames();
  /// False if the connection is gone.
  bool handle(const amqp_frame_t& frame);
  bool handle_method(const amqp_method_t& method);
  void confirm(std::uint64_t tag, bool multiple, bool is_stored);
  void note_return(const amqp_basic_properties_t& properties);
  void expire();
  void pause(Milliseconds time);
  /// Gives the connection up; `code` and `why` are the server's or the library's.
  void drop(int code, const std::string& why);

  const AmqpTarget target_;
  EventFd wake_;  ///< for the thread that publishes

  // Of the thread that publishes.
  std::unique_ptr<AmqpConnection> connection_;
  std::size_t next_server_ = 0;
  std::uint64_t next_tag_ = 1;
  bool confirmed_some_ = false;
  TimePoint last_confirm_{};
  std::string returning_;  ///< why the server returns the message whose header comes next

  // Under mutex_.
  bool is_up_ = false;
  int socket_ = -1;  ///< of the connection
  bool is_writing_ = false;
  int trouble_code_ = 0;     ///< of what trouble_ says
  bool is_blocked_ = false;  ///< the server is low on memory or disk
  /// It has refused to store a line. RabbitMQ 3.10 does so on a channel for good that was opened while the
  /// queue had lost its leader, so that another one is opened once every line has its answer.
  bool is_failing_ = false;
  std::size_t size_limit_ = 0;  ///< of a message; 0: not known
  std::deque<Waiting> waiting_;
  std::map<std::uint64_t, Sent> sent_;  ///< by delivery tag
  std::thread thread_;
};

}  // namespace mailroom::amqp
