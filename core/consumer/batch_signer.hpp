#pragma once

#include <functional>

#include "base/log.hpp"
#include "consumer/queue_session.hpp"
#include "consumer/sink.hpp"
#include "crypto/hmac.hpp"

namespace mailroom {

/// Signs the tokens of a leased batch and gives them to a sink. Skips and counts tokens that are no longer
/// due. Skips, counts and logs by id tokens that cannot be written or signed: a control character or invalid
/// UTF-8 in an address, a secret that is not 32 bytes, a recovery code that is not 5 characters.
class BatchSigner {
 public:
  BatchSigner(const Key& key, Log& log) : hmac_(key), log_(log) {}

  /// Takes effect with the next batch.
  void configure(const Key& key) { hmac_ = Hmac(key); }

  /// Returns the receipt of the batch once `sink` has finished it. With outcomes, tokens that were not
  /// accepted count as skipped. Throws ConnectionLost from the fetch, and what the sink throws.
  Receipt emit(QueueSession& session, const Lease& lease, int line_limit, Sink& sink,
               const std::function<void()>& when_slow = {});

 private:
  /// Gives a token to the sink, or skips and counts it.
  void add(const TokenRow& row, BatchCounts& counts, Sink& sink);

  Hmac hmac_;
  Log& log_;
};

}  // namespace mailroom
