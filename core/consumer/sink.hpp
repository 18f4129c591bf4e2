// Where a consumer delivers its tokens, as an interface: to stdout, to a carrier or to SMTP relays.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "claim/queue_session.hpp"

namespace mailroom::consumer {

/// What became of a batch.
struct BatchOutcome {
  int emitted = 0;  ///< tokens that the receiver has taken
  /// One for each token that was added or skipped; nullopt from a sink that learns no outcomes.
  std::optional<std::vector<claim::TokenOutcome>> outcomes{};
};

/// Where a consumer delivers signed tokens. A sink never sees the database, and the consumer does not know
/// which sink it drives. Its receiver is whatever takes them: stdout's reader, a program, a server or a
/// relay.
class Sink {
 public:
  virtual ~Sink() = default;

  /// Where it has leases recorded from now on; outlives the sink. A sink without outcomes has none recorded.
  virtual void attend(claim::LeaseRecord& record) { static_cast<void>(record); }
  /// How many batches may be open at the same time: 1 or 2. With 2 the receiver has work while the consumer
  /// acknowledges one batch and claims the next.
  virtual std::size_t most_open() const { return 1; }
  /// How many tokens it takes now, with those in open batches.
  virtual int room() const { return std::numeric_limits<int>::max(); }
  /// Opens a batch. A sink that writes lines puts at most `line_limit` tokens in one.
  virtual void begin(const claim::Lease& lease, int line_limit) = 0;
  /// Adds a due token, whose email, login and code are printable, signed: `token` is empty if its action has
  /// no path. May start to deliver it, but must not
  /// block: a transaction may be open. The views in `row` are valid only during the call.
  virtual void add(const claim::TokenRow& row, std::string_view token) = 0;
  /// Reports a token of the batch that is not due, or that cannot be written or signed. `defect` says why it
  /// cannot; it is null for a token that is not due.
  virtual void skip(const claim::TokenRow& row, const char* defect) {
    static_cast<void>(row);
    static_cast<void>(defect);
  }
  /// All tokens of the newest batch have been added or skipped.
  virtual void complete() {}
  /// Closes the oldest open batch, and returns what became of it, once that is known. Calls `when_slow` once
  /// if it waits for the receiver for some time. Throws Error(output_closed) when the receiver has gone.
  virtual BatchOutcome finish(const std::function<void()>& when_slow) = 0;
  /// Drops the newest batch, of which not all tokens could be added: its lease will be made again. What has
  /// left of it may come again.
  virtual void forget() = 0;
  /// False if finish() would have to wait for the receiver.
  virtual bool is_ready() const = 0;
  /// True if the next claim may be made while the tokens of a batch are added: finish() would return the
  /// batch before it at once, without a word to the record.
  virtual bool takes_ahead() { return true; }
  /// Asks the record for what its messages wait for; called before each consult(). Only here and in finish()
  /// may the session with the database end meanwhile.
  virtual void ask() {}
  /// Shares with other consumers which of its receivers are unavailable; called before each claim. `heard`:
  /// others may have changed it. A sink that shares nothing does nothing.
  virtual void consult(claim::SinkBoard& board, bool heard) {
    static_cast<void>(board);
    static_cast<void>(heard);
  }
  /// The consumer stops: what it has reserved for itself is for others.
  virtual void leave(claim::SinkBoard& board) { static_cast<void>(board); }
  /// What became of tokens whose batches did not wait for it, since the last call: one receipt for each
  /// message.
  virtual std::vector<claim::Receipt> take_late() { return {}; }
  /// Waits until take_late() has nothing more to come. Called when the consumer stops, leaves its session or
  /// changes its sink.
  virtual void finish_late() {}
  /// The consumer claims nothing before this time, because the receiver is unavailable.
  virtual TimePoint claims_from() const { return {}; }
  /// Which of its receivers are unavailable, and why; printable, and empty if none is.
  virtual std::string unavailability() const { return {}; }
};

}  // namespace mailroom::consumer
