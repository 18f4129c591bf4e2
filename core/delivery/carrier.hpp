// The interface to whatever takes messages: a program, an HTTP server, NATS, RabbitMQ or SMTP relays.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "delivery/answer.hpp"
#include "delivery/message.hpp"

namespace mailroom {

/// Hands messages over to another program or server, several at the same time, and learns what became of
/// each. It may have threads of its own, but all functions are for one thread. It tries each message once:
/// the Dispatcher that drives it repeats, waits and decides. It never sees the database.
class Carrier {
 public:
  virtual ~Carrier() = default;

  /// Where it carries messages to, at least one: host and port, or the program; never credentials.
  virtual std::vector<std::string> endpoints() const = 0;
  /// Returns at once. Every message gets one answer, within the configured time-out.
  virtual void submit(Message message) = 0;
  /// For poll(2): readable when take() would return something.
  virtual int fd() const = 0;
  /// The answers since the last call, in any order.
  virtual std::vector<Answer> take() = 0;
  /// The number of messages whose answer take() has not returned.
  virtual std::size_t unfinished() const = 0;
  /// Answers every message at once: unknown if it was sent, otherwise unavailable.
  virtual void cancel() = 0;
  /// How many messages beyond those in flight it keeps, so that the next one does not wait for us.
  virtual int ahead() const { return 0; }
  /// Keeps at most `most` connections to an endpoint from now on, and gives back what it has not begun.
  virtual void limit_connections(std::size_t /*endpoint*/, int /*most*/) {}
};

}  // namespace mailroom
