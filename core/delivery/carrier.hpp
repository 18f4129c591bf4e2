// The interface to whatever takes lines: a program, an HTTP server, NATS or RabbitMQ.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace mailroom {

/// One line of a batch, to be handed over.
struct Parcel {
  std::int64_t id = 0;  ///< comes back with the answer
  std::string queue;
  std::int64_t batch = 0;
  int attempt = 0;                   ///< of the batch
  int line = 0;                      ///< its number in the batch, from 1
  std::string action;                ///< `activation`, `password_recovery`, or `mixed`
  std::vector<std::int64_t> tokens;  ///< their ids
  std::int64_t created_at = 0;       ///< of the newest of them, in seconds since 1970
  /// `queue.batch.line.digest`: the digest is of the ids and texts of the tokens. The same at each attempt,
  /// so that the other side can recognise a line that it has.
  std::string message_id;
  std::string_view body;  ///< JSON without a newline; lives until the answer has been taken
};

/// What became of a line, or of one of its tokens.
enum class ParcelVerdict {
  accepted,     ///< the other side has taken responsibility
  deferred,     ///< not accepted; a later attempt may succeed
  rejected,     ///< will never be accepted
  unknown,      ///< sent, and not answered: the other side may have it
  unavailable,  ///< the other side takes nothing now; says nothing about this line
};

struct TokenVerdict {
  std::int64_t token = 0;
  ParcelVerdict verdict = ParcelVerdict::accepted;
  std::string reason;
};

struct Answer {
  std::int64_t id = 0;  ///< of the parcel
  ParcelVerdict verdict = ParcelVerdict::unavailable;
  std::string sink;                    ///< as Carrier::name(), or the one of several servers that answered
  int code = 0;                        ///< of the answer; 0 for none
  std::string reply;                   ///< the answer, or why there was none; any bytes, without credentials
  std::optional<Milliseconds> wait{};  ///< until the next attempt, if the other side asks for it
  bool throttled = false;              ///< it asks for a lower rate
  std::chrono::nanoseconds took{};
  WallTime ended{};
  std::vector<TokenVerdict> tokens{};  ///< those that the answer names; `verdict` holds for the others
};

/// Hands lines over to another program or server, several at the same time, and learns what became of each.
/// It may have threads of its own, but all functions are for one thread. It tries each parcel once: the sink
/// that drives it repeats, waits and decides. It never sees the database.
class Carrier {
 public:
  virtual ~Carrier() = default;

  /// Returns at once. Every parcel gets one answer, within the configured time-out.
  virtual void submit(Parcel parcel) = 0;
  /// For poll(2): readable when take() would return something.
  virtual int fd() const = 0;
  /// The answers since the last call, in any order.
  virtual std::vector<Answer> take() = 0;
  /// The number of parcels whose answer take() has not returned.
  virtual std::size_t unfinished() const = 0;
  /// Answers every parcel at once: unknown if it was sent, otherwise unavailable.
  virtual void cancel() = 0;
  /// Host and port, or the program; never credentials.
  virtual std::string name() const = 0;
};

}  // namespace mailroom
