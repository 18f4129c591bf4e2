// The step between claim and sink: due tokens are signed, all others counted.
#pragma once

#include <functional>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "claim/queue_session.hpp"
#include "consumer/consumer_observer.hpp"
#include "consumer/sink.hpp"
#include "crypto/hmac.hpp"

namespace mailroom::consumer {

/// A batch whose tokens a sink has.
struct SignedBatch {
  claim::Receipt receipt;  ///< complete once the sink has finished the batch
  TimePoint signed_at{};
  BatchTimes times{};                    ///< without its claim
  std::vector<CreatedTokens> created{};  ///< when the tokens were created that the sink was given
  std::vector<ActionCounts> actions{};
  std::int64_t last_token = 0;  ///< the highest id; 0 if it has no token
  int tokens = 0;               ///< how many it has, skipped ones too
};

/// Signs the tokens of a leased batch and gives them to a sink, those of an action without a path unsigned.
/// Skips and counts tokens that are no longer due. Skips, counts and logs by id tokens that cannot be written
/// or signed: a control character or invalid UTF-8 in an address, a secret that is not 32 bytes, a code that
/// the action asks for and that is not 5 characters.
class BatchSigner {
 public:
  /// `log` and `clock` must outlive this.
  BatchSigner(const crypto::Key& key, Log& log, const Clock& clock = SteadyClock::only())
      : hmac_(key), log_(log), clock_(clock) {}

  /// Takes effect with the next batch.
  void configure(const crypto::Key& key) { hmac_ = crypto::Hmac(key); }

  /// Calls its argument for each row of a batch.
  using Rows = std::function<void(const std::function<void(const claim::TokenRow&)>& each)>;

  /// Opens the batch of `lease` at `sink` when its first row comes, and adds its tokens. Throws what `rows`
  /// throws: then the sink has forgotten the batch.
  SignedBatch sign(const claim::Lease& lease, int line_limit, const Rows& rows, Sink& sink);
  /// Completes `batch` once `sink` has finished it; it must be the oldest that is open there. Tokens that
  /// were not accepted count as skipped. Throws what the sink throws.
  void finish(SignedBatch& batch, Sink& sink, const std::function<void()>& when_slow = {});

 private:
  /// Adds a token to the batch, or skips and counts it.
  void add(const claim::TokenRow& row, SignedBatch& batch, Sink& sink);

  crypto::Hmac hmac_;
  Log& log_;
  const Clock& clock_;
};

}  // namespace mailroom::consumer
