// How the tokens of a claimed batch are read: with the claim, or by statements, those of large ones in a
// second session.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/log.hpp"
#include "claim/batch_reader.hpp"
#include "claim/claim_statement.hpp"
#include "claim/message_rows.hpp"
#include "claim/recipient_counts.hpp"
#include "db/connection.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom::claim {

/// Works in two sessions at the same time. While it does, the caller uses neither.
class TwoSessions {
 public:
  using Work = std::function<void(db::Connection&)>;
  /// Does the work in both sessions, and returns when both have ended. Throws what one of them has thrown.
  using InBoth = std::function<void(const Work&)>;

  /// `log` and `watcher` may be null. What is not must outlive this.
  TwoSessions(db::Connection& first, db::DatabaseTarget target, const char* settings, Log* log,
              process::StopWatcher* watcher)
      : first_(first), target_(std::move(target)), settings_(settings), log_(log), watcher_(watcher) {}

  /// False if opening the second session has failed before.
  bool may_run() const { return may_open_; }
  /// Does `on_first` in the first session in a thread of its own, and meanwhile `on_second` in the second
  /// one, which may let both sessions work as soon as `on_first` has ended. Returns when all has ended.
  /// Throws what `on_second` has thrown, or else what `on_first` has. Opens the second session when it is
  /// first needed; false, with nothing done, where that fails, such as behind a pooler that has no more.
  bool run(const Work& on_first, const std::function<void(db::Connection& second, const InBoth&)>& on_second);

 private:
  bool open();

  db::Connection& first_;
  db::DatabaseTarget target_;
  const char* settings_;
  Log* log_;
  process::StopWatcher* watcher_;
  bool may_open_ = true;
  std::unique_ptr<db::Connection> second_;
};

/// Reads the batches of a session. The tokens of a small one have come with its claim; a statement reads
/// those for a sink with outcomes. A large one is read, if possible, in a second session while the
/// first one makes the next claim, and reads the tokens of a large batch that it takes.
class BatchFetch {
 public:
  using Each = std::function<void(const TokenRow&)>;

  /// Prepares its statements, and reads the actions. `connection` must outlive this. `target`, `settings`,
  /// `log` and `watcher`: for the second session.
  BatchFetch(db::Connection& connection, const TokenDetail& detail, db::DatabaseTarget target,
             const char* settings, Log* log, process::StopWatcher* watcher);

  /// Reads the actions again: they may have changed.
  void refresh_actions() { actions_.refresh(); }
  std::vector<std::string> action_names() const { return actions_.now()->names(); }
  /// Calls `each` for the tokens of a batch that this connection has claimed.
  void read(ClaimedBatch& batch, const Each& each);
  /// True if read_beside() may read the batch, as far as is known.
  bool may_read_beside(const ClaimedBatch& batch) const { return is_large(batch) && sessions_.may_run(); }
  /// read() in the second session, while the first one does `claim`; returns its result. Reads nothing and
  /// returns nullopt where there cannot be a second session.
  std::optional<ClaimedBatch> read_beside(ClaimedBatch& batch, const Each& each,
                                          const std::function<ClaimedBatch()>& claim);
  /// read() for a sink with outcomes. Once the tokens are here, and if `next` asks for it, `claim` is done in
  /// the session while `each` is called, and the tokens of its batch are read too. Returns what it claimed;
  /// nullopt if `next` asked for nothing, or was not called, since `each` needs more of the session.
  std::optional<ClaimedBatch> read_and_claim(ClaimedBatch& batch, const Each& each, const NextClaim& next,
                                             const std::function<ClaimedBatch(const ClaimRequest&)>& claim);

 private:
  using Messages = std::vector<std::optional<MessageContent>>;
  /// The token of a row.
  using ReadToken = std::function<std::optional<TokenRow>(const db::Row&)>;
  /// Its message, if that has come along.
  using ReadMessage = std::function<std::optional<MessageContent>(const db::Row&)>;
  /// Calls `each` for the tokens of the rows of a small batch.
  void read_rows(const Lease& lease, const db::Rows& rows, const ReadToken& read_token,
                 const ReadMessage& read_message, const Each& each);
  /// The tokens of a batch with outcomes.
  db::Rows mail_rows(const ClaimedBatch& batch);
  /// True if nothing more has to be read for these rows.
  bool are_whole(const db::Rows& rows);
  void read_mails_ahead(ClaimedBatch& claimed);
  void read_fetched_rows(const Lease& lease, const db::Rows& rows, const Each& each);
  void note_not_ahead(const Error& error) const;
  /// Calls `each` for `tokens`, with their messages, of which it reads those that have not come along.
  void read_messages(std::vector<TokenRow>& tokens, Messages& messages, const Each& each);
  bool is_large(const ClaimedBatch& batch) const {
    return !detail_.delivers && batch.reply.size >= large_batch;
  }
  /// The tokens of a batch, if it is a large one.
  BatchTokens read_ahead(const ClaimedBatch& claimed, const std::shared_ptr<const queue::Actions>& known,
                         BatchTokens memory) const;
  TokenReading reading(const ClaimedBatch& batch, const std::shared_ptr<const queue::Actions>& known) const {
    return {.with_creation = detail_.with_creation, .has_messages = batch.reply.messages, .actions = known};
  }

  db::Connection& connection_;
  TokenDetail detail_;
  Log* log_;
  process::StopWatcher* watcher_;
  queue::KnownActions actions_;
  MessageReader messages_;
  RawMailReader raw_mails_;
  RecipientCounts counts_;
  TwoSessions sessions_;
  BatchReader reader_;
  BatchTokens tokens_;  ///< of the next batch if it was read ahead, or memory
  BatchTokens spare_;   ///< memory
};

}  // namespace mailroom::claim
