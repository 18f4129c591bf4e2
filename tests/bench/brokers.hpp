#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mailroom::bench {

/// A cluster of three nodes that scripts/with-nats or scripts/with-rabbitmq has started, by its client
/// library.
class Broker {
 public:
  static constexpr std::size_t in_flight = 64;  ///< lines, as `collect` keeps by default

  virtual ~Broker() = default;

  /// Makes the stream or queue `mailroom` anew, with a copy on each node.
  virtual void make_empty() = 0;
  /// The messages that are there.
  virtual std::int64_t count() = 0;
  /// Publishes the lines, as messages like those of `collect`; returns when all are acknowledged. Throws
  /// std::runtime_error if one is refused.
  virtual void publish(const std::vector<std::string>& lines) = 0;
};

/// An id for the line of that number, as long as those of `collect`.
inline std::string message_id(std::uint64_t number) {
  return "mailroom." + std::to_string(number) + ".1.00112233445566778899aabbccddeeff";
}

struct BrokerKind {
  std::string name;     ///< in rows
  std::string address;  ///< the environment variable with its URL
  /// For `collect`: a setting, and the environment variable with its value.
  std::map<std::string, std::string> settings{};
  std::function<std::unique_ptr<Broker>()> connect;
};

BrokerKind nats_kind();
BrokerKind amqp_kind();

/// Throws std::runtime_error if there is no such broker.
BrokerKind broker_kind(const std::string& name);

}  // namespace mailroom::bench
