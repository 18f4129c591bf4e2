// How the tokens of a claimed batch are read: with the claim, by a statement, or by COPY in two sessions.
#pragma once

#include <functional>
#include <optional>

#include "claim/batch_reader.hpp"
#include "claim/claim_statement.hpp"
#include "claim/two_sessions.hpp"

namespace mailroom {

/// Reads the batches of a session. The tokens of a small one have come with its claim; a statement reads
/// those for a sink with outcomes. A large one is read by COPY, if possible in a second session while the
/// first one makes the next claim, and reads the tokens of a large batch that it takes.
class BatchFetch {
 public:
  using Each = std::function<void(const TokenRow&)>;

  /// Prepares its statement. `connection` must outlive this. `target`, `settings`, `log` and `watcher`: for
  /// the second session.
  BatchFetch(Connection& connection, const TokenDetail& detail, DatabaseTarget target, const char* settings,
             Log* log, StopWatcher* watcher);

  /// Calls `each` for the tokens of a batch that this connection has claimed.
  void read(ClaimedBatch& batch, const Each& each);
  /// True if read_beside() may read the batch, as far as is known.
  bool may_read_beside(const ClaimedBatch& batch) const { return is_large(batch) && sessions_.may_run(); }
  /// read() in the second session, while the first one does `claim`; returns its result. Reads nothing and
  /// returns nullopt where there cannot be a second session.
  std::optional<ClaimedBatch> read_beside(ClaimedBatch& batch, const Each& each,
                                          const std::function<ClaimedBatch()>& claim);

 private:
  bool is_large(const ClaimedBatch& batch) const {
    return !detail_.delivers && batch.reply.size >= streamed_size;
  }
  /// The tokens of a batch, if it is a large one.
  BatchTokens read_ahead(const ClaimedBatch& claimed, BatchTokens memory) const;

  Connection& connection_;
  TokenDetail detail_;
  Log* log_;
  TwoSessions sessions_;
  BatchReader reader_;
  BatchTokens tokens_;  ///< of the next batch if it was read ahead, or memory
  BatchTokens spare_;   ///< memory
};

}  // namespace mailroom
