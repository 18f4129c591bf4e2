#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "crypto/token.hpp"

namespace mailroom {

/// A batch that this session holds, and which hand-out of it: an acknowledgement names both.
struct Lease {
  std::int64_t batch = 0;
  int attempt = 0;

  bool operator==(const Lease&) const = default;
};

/// What became of the tokens of a batch.
struct BatchCounts {
  int emitted = 0;
  int expired = 0;
  int consumed = 0;
  int wrong_status = 0;
  int invalid = 0;
  std::vector<std::int64_t> left_out{};  ///< ids of those not emitted, ascending

  int skipped() const { return expired + consumed + wrong_status + invalid; }
};

/// Says that a batch has left: its lease ends.
struct Receipt {
  Lease lease;
  BatchCounts counts;
};

struct ClaimRequest {
  int limit = 0;                     ///< due tokens a batch; 0 acknowledges alone
  bool partial = false;              ///< take a batch that is not full
  bool take_over = true;             ///< take batches whose collector is gone
  bool publish_cursor = false;       ///< let jobs.last_seq follow
  bool without_lock = false;         ///< limit 0: does not wait for others, if this session took the batch
  bool routine = false;              ///< nothing has been heard of: most often there is nothing to claim
  std::optional<Receipt> receipt{};  ///< of the batch before
};

struct ClaimReply {
  std::optional<Lease> lease{};  ///< the batch taken, to be fetched
  int pending = 0;               ///< due tokens that were seen and left
  std::int64_t last = 0;         ///< the id up to which each due token was seen
  bool more = false;             ///< another claim at once is worth while
  bool receipt_void = false;     ///< the batch acknowledged had been taken over: it may go out twice
  std::optional<std::int64_t> set_aside{};  ///< a batch that was given up after too many attempts
  int skipped = 0;  ///< tokens that the claim skipped and recorded, being expired or consumed
};

enum class TokenState { due, consumed, expired, wrong_status };

/// A token of a batch with its account, as of the claim or later; the views live as long as the call that
/// hands it out.
struct TokenRow {
  std::int64_t id = 0;
  Action action = Action::activation;
  std::optional<Secret> secret;  ///< nothing when it is not 32 bytes
  std::string_view code;
  std::int64_t expires_at = 0;
  std::string_view email;
  std::string_view login;
  TokenState state = TokenState::due;
};

/// How inserts and collectors wake each other.
enum class Waking {
  stay_awake,   ///< inserts need not notify until this session falls asleep or ends; false if it is not to be
  fall_asleep,  ///< inserts notify again
  make_way,     ///< the same, and the other collectors are told to settle
  ask,          ///< whether transactions are open that may have inserted before that without notifying
};

/// What has been heard.
enum class Notified {
  no,
  look,    ///< tokens came
  settle,  ///< … or another collector makes way: transactions may be open that have not notified
};

/// A collector's session with the queue. Its leases end with it. Every call throws ConnectionLost when the
/// session is gone.
class QueueSession {
 public:
  virtual ~QueueSession() = default;

  /// One transaction of its own: acknowledges, then takes the next batch.
  virtual ClaimReply claim(const ClaimRequest& request) = 0;
  /// The rows of the batch that the last claim has taken, by id; none if it has been taken over. A
  /// transaction may be open while `each` works, which therefore waits for nothing.
  virtual void fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) = 0;
  /// What notifications came since the last call.
  virtual Notified take_notifications() = 0;
  /// What is said of `waking`. To ask is true while transactions are open that were so when it was asked
  /// first after this session fell asleep, or began: of others a claim sees all, or they notify.
  virtual bool arrange(Waking waking) = 0;
  /// A round trip, which alone shows that the peer is still there.
  virtual void check_health() = 0;
  /// For poll(2): readable when a notification, or the end of the session, has come.
  virtual int socket() const = 0;
};

/// Makes a session, attached and listening.
using SessionFactory = std::function<std::unique_ptr<QueueSession>()>;

}  // namespace mailroom
