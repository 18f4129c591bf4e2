#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "consumer/consumer_observer.hpp"
#include "consumer/queue_session.hpp"
#include "consumer/sink.hpp"
#include "crypto/hmac.hpp"

namespace mailroom {

/// Signs the tokens of a leased batch and gives them to a sink. Skips and counts tokens that are no longer
/// due. Skips, counts and logs by id tokens that cannot be written or signed: a control character or invalid
/// UTF-8 in an address, a secret that is not 32 bytes, a recovery code that is not 5 characters.
class BatchSigner {
 public:
  /// `log` and `clock` must outlive this.
  BatchSigner(const Key& key, Log& log, const Clock& clock = SteadyClock::only())
      : hmac_(key), log_(log), clock_(clock) {}

  /// Takes effect with the next batch.
  void configure(const Key& key) { hmac_ = Hmac(key); }

  /// Returns the receipt of the batch once `sink` has finished it. With outcomes, tokens that were not
  /// accepted count as skipped. `before_finish` is called when the sink has all tokens. Throws ConnectionLost
  /// from the fetch, and what the sink throws.
  Receipt emit(QueueSession& session, const Lease& lease, int line_limit, Sink& sink,
               const std::function<void()>& when_slow = {}, const std::function<void()>& before_finish = {});

  /// The steps of the last batch but its claim.
  const BatchTimes& times() const { return times_; }
  /// When the tokens of the last batch were created that its sink was given.
  std::span<const CreatedTokens> created() const { return created_; }
  /// The highest id in the last batch; 0 if it had no token.
  std::int64_t last_token() const { return last_token_; }

 private:
  /// Gives a token to the sink, or skips and counts it.
  void add(const TokenRow& row, BatchCounts& counts, Sink& sink);
  void count_creation(std::int64_t second);

  Hmac hmac_;
  Log& log_;
  const Clock& clock_;
  BatchTimes times_;
  std::vector<CreatedTokens> created_;
  std::int64_t last_token_ = 0;
};

}  // namespace mailroom
