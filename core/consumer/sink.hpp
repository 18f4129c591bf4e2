#pragma once

#include <functional>

#include "consumer/queue_session.hpp"
#include "crypto/token.hpp"

namespace mailroom {

/// Where a consumer delivers signed tokens. One batch is open at a time. A sink never sees the database, and
/// the consumer does not know which sink it drives.
class Sink {
 public:
  virtual ~Sink() = default;

  /// Opens a batch.
  virtual void begin(const Lease& lease) = 0;
  /// Adds a due token, whose email, login and code are printable. May start to deliver it, but must not
  /// block: a transaction may be open. The views in `row` are valid only during the call.
  virtual void add(const TokenRow& row, const TokenText& token) = 0;
  /// Closes the batch, and returns how many of its tokens are emitted, once that is known. Calls `when_slow`
  /// once if it waits for the other side for some time. Throws Error(output_closed) when the other side has
  /// gone.
  virtual int finish(const std::function<void()>& when_slow) = 0;
  /// False if finish() would have to wait for the other side.
  virtual bool is_ready() const = 0;
};

}  // namespace mailroom
