#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/output.hpp"
#include "crypto/hmac.hpp"
#include "queue/encoder.hpp"
#include "queue/queue_session.hpp"

namespace mailroom {

/// Signs a leased batch and writes it as one line, or as several of `line_limit` tokens where it holds more.
/// What is not due any more is left out and counted; what cannot be written as a line or signed (a control
/// character or invalid UTF-8 in an address, a secret that is not 32 bytes, a recovery code that is not 5
/// characters) is left out, counted and logged by id.
class BatchWriter {
 public:
  BatchWriter(const Key& key, std::unique_ptr<Encoder> encoder, int line_limit, Output& output, Log& log);

  /// From the next batch on.
  void configure(const Key& key, std::unique_ptr<Encoder> encoder, int line_limit);

  /// Returns once the lines are written, each by itself; no line for a batch of which nothing is due. Throws
  /// ConnectionLost from the fetch, Error(output_closed) from the write. Calls `when_slow` once if the write
  /// has to wait for its reader for some time.
  BatchCounts write(QueueSession& session, const Lease& lease, const std::function<void()>& when_slow = {});

 private:
  void take(const TokenRow& row, BatchCounts& counts);
  void add_to_line(const TokenRow& row);
  /// The count that a token which must not go out belongs to; null for one that may.
  int* reason_to_skip(const TokenRow& row, BatchCounts& counts);

  Hmac hmac_;
  std::unique_ptr<Encoder> encoder_;
  int line_limit_;
  Lease lease_;
  int in_line_ = 0;
  std::vector<std::string> full_lines_;  ///< all but the last, which the encoder has
  Output& output_;
  Log& log_;
};

}  // namespace mailroom
