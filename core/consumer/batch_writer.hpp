#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/output.hpp"
#include "consumer/encoder.hpp"
#include "consumer/queue_session.hpp"
#include "crypto/hmac.hpp"

namespace mailroom {

/// Signs a leased batch and writes it as lines of at most `line_limit` tokens. Skips and counts tokens that
/// are no longer due. Skips, counts and logs by id tokens that cannot be written or signed: a control
/// character or invalid UTF-8 in an address, a secret that is not 32 bytes, a recovery code that is not 5
/// characters.
class BatchWriter {
 public:
  BatchWriter(const Key& key, std::unique_ptr<Encoder> encoder, int line_limit, Output& output, Log& log);

  /// Takes effect with the next batch.
  void configure(const Key& key, std::unique_ptr<Encoder> encoder, int line_limit);

  /// Returns once the lines are written, each in a separate write; writes no line if no token is due. Throws
  /// ConnectionLost from the fetch, Error(output_closed) from the write. Calls `when_slow` once if a write
  /// waits for the reader for some time.
  BatchCounts write(QueueSession& session, const Lease& lease, const std::function<void()>& when_slow = {});

 private:
  void take(const TokenRow& row, BatchCounts& counts);
  void add_to_line(const TokenRow& row);
  /// The count to which a skipped token belongs; null if the token may be emitted.
  int* reason_to_skip(const TokenRow& row, BatchCounts& counts);

  Hmac hmac_;
  std::unique_ptr<Encoder> encoder_;
  int line_limit_;
  Lease lease_;
  int in_line_ = 0;
  std::vector<std::string> full_lines_;  ///< all but the last line, which is still in the encoder
  Output& output_;
  Log& log_;
};

}  // namespace mailroom
