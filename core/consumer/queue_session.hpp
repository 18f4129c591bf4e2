#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "crypto/token.hpp"

namespace mailroom {

/// A leased batch and the number of its lease; an acknowledgement names both.
struct Lease {
  std::int64_t batch = 0;
  int attempt = 0;

  bool operator==(const Lease&) const = default;
};

/// The outcome of the tokens of a batch.
struct BatchCounts {
  int emitted = 0;
  int expired = 0;
  int consumed = 0;
  int wrong_status = 0;
  int invalid = 0;
  std::vector<std::int64_t> skipped_ids{};  ///< ids of skipped tokens, ascending

  int skipped() const { return expired + consumed + wrong_status + invalid; }
};

/// Acknowledges that a batch is written, and ends its lease.
struct Receipt {
  Lease lease;
  BatchCounts counts;
};

struct ClaimRequest {
  int limit = 0;                     ///< due tokens per batch; 0 only acknowledges
  bool partial = false;              ///< take a batch that is not full
  bool take_over = true;             ///< take over abandoned batches
  bool publish_cursor = false;       ///< update jobs.last_seq
  bool without_lock = false;         ///< limit 0: do not wait for the lock; this session took the batch
  bool routine = false;              ///< no notification: usually there is nothing to claim
  std::optional<Receipt> receipt{};  ///< of the previous batch
};

struct ClaimReply {
  std::optional<Lease> lease{};  ///< the batch taken, to be fetched
  int pending = 0;               ///< due tokens that were seen and not taken
  std::int64_t last = 0;         ///< every due token up to this id was seen
  bool more = false;             ///< another claim should follow at once
  bool receipt_void = false;     ///< the acknowledged batch had been taken over: it may be emitted twice
  std::optional<std::int64_t> dead{};  ///< a batch that became a dead letter after too many attempts
  int skipped = 0;                     ///< expired and consumed tokens that the claim skipped and recorded
};

enum class TokenState { due, consumed, expired, wrong_status };

/// A token of a batch with its account, as of the claim or later. The views are valid only during the
/// callback of fetch().
struct TokenRow {
  std::int64_t id = 0;
  Action action = Action::activation;
  std::optional<Secret> secret;  ///< nullopt if it is not 32 bytes
  std::string_view code;
  std::int64_t expires_at = 0;  ///< seconds since 1970, as the line has it
  std::string_view email;
  std::string_view login;
  TokenState state = TokenState::due;
};

/// Whether inserts notify collectors.
enum class Waking {
  stay_polling,     ///< inserts do not notify until this session starts to listen or ends; false if refused
  start_listening,  ///< inserts notify again
  drain,            ///< inserts notify again, and the other collectors start draining
  ask,              ///< asks whether transactions are open that may have inserted without notifying
};

/// The notifications since the last call.
enum class Notified {
  no,
  poll,   ///< tokens arrived
  drain,  ///< another collector stopped polling: open transactions may not have notified
};

/// A collector's session with the queue. Its leases end with it. Every call throws ConnectionLost when the
/// session has ended.
class QueueSession {
 public:
  virtual ~QueueSession() = default;

  /// Acknowledges, then takes the next batch, in a transaction of its own.
  virtual ClaimReply claim(const ClaimRequest& request) = 0;
  /// Calls `each` for the rows of the batch that the last claim took, ordered by id; for none if the batch
  /// has been taken over. A transaction may be open during the call, so `each` must not block.
  virtual void fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) = 0;
  virtual Notified take_notifications() = 0;
  /// Does what `waking` says. `ask` returns true while a transaction is open that was open at the first `ask`
  /// after this session began or started to listen: a claim sees all others, or they notify.
  virtual bool arrange(Waking waking) = 0;
  /// Makes a round trip, the only way to detect a dead peer.
  virtual void check_health() = 0;
  /// For poll(2): readable after a notification or the end of the session.
  virtual int socket() const = 0;
};

/// Makes a session, attached and listening.
using SessionFactory = std::function<std::unique_ptr<QueueSession>()>;

}  // namespace mailroom
