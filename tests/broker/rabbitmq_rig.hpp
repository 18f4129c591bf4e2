#pragma once

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "broker/handover_rig.hpp"
#include "carriers/amqp/carrier.hpp"
#include "carriers/amqp/connection.hpp"

namespace mailroom::test {

/// What the settings need for the cluster of scripts/with-rabbitmq.
config::Settings rabbitmq_settings();

/// A client that makes queues and reads them, by connections of its own.
class RabbitmqReader {
 public:
  /// A message as it has come.
  struct Read {
    std::string id;
    std::string body;
    bool is_again;  ///< as the server says: it may have been delivered before
  };

  /// Removes the queue and makes it anew: a durable quorum queue, or a classic one.
  void make_queue(const std::string& name, bool is_quorum = true, bool is_durable = true);
  void drop_queue(const std::string& name);
  /// How often each message id is in the queue; the messages go. `revive` is called once if the queue answers
  /// nothing for a minute.
  std::map<std::string, int> read(const std::string& name, const std::function<void()>& revive = {});
  /// The properties of the first message that read() has found.
  const std::string& first() const { return first_; }
  /// The texts of all that read() has found, each with a newline; and without those whose message id came
  /// before.
  const std::string& lines() const { return lines_; }
  const std::string& lines_once() const { return lines_once_; }

 private:
  std::unique_ptr<amqp::AmqpConnection> connect();
  /// False if the connection breaks.
  bool read_all(amqp::AmqpConnection& connection, const std::string& name, std::map<std::string, int>& found);
  void add(const std::vector<Read>& batch, std::map<std::string, int>& found);

  std::string first_;
  std::string lines_;
  std::string lines_once_;
};

/// The node that leads the queue, and whether all members are there.
int rabbitmq_leader(const std::string& name);

/// Makes the servers write the definitions of queues now. By themselves they do it some seconds later: until
/// then a new queue is gone if all servers are killed.
void keep_rabbitmq_definitions();

/// What `rabbitmqctl ARGUMENTS` prints, on a node that runs.
std::string rabbitmqctl(const std::string& arguments);

/// A cluster with a new quorum queue, and settings that name it. RabbitMQ 3.10.8 does not restart members of
/// a queue if one of the same name was removed shortly before its server was killed ("could not be restarted:
/// enoent"), so that each has a name of its own.
struct RabbitmqRig {
  RabbitmqRig();

  std::unique_ptr<delivery::Carrier> carrier() { return amqp::make_amqp_carrier({settings, log, 1}); }
  /// Starts what was killed, and waits until the cluster is whole.
  void restore();
  /// What is in the queue: see RabbitmqReader::read(). Members that were killed together may not find each
  /// other again; then each server is restarted, as an operator does.
  std::map<std::string, int> read();

  std::string queue;
  std::ostringstream text;
  Log log{Log::Options{}, text};
  config::Settings settings = rabbitmq_settings();
  RabbitmqReader reader;
  BrokerNodes nodes{from_script("MAILROOM_TEST_RABBITMQ_DIRECTORY")};
};

}  // namespace mailroom::test
