// The queue as every consumer uses it: a session of PostgreSQL, which claims, reads and is notified.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "claim/batch_fetch.hpp"
#include "claim/claim_statement.hpp"
#include "claim/queue_session.hpp"
#include "db/connection.hpp"
#include "db/wait_watch.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom::claim {

/// Queues in PostgreSQL; uses the functions of migrations/functions.
class PgQueueSession final : public QueueSession {
 public:
  struct Setup {
    db::DatabaseTarget conninfo;
    std::vector<std::string> queues;
    std::string channel;
    void (*check_schema)(db::Connection&) = nullptr;
    std::string fingerprint{};  ///< 16 hexadecimal digits: publishes which key this collector signs with
    Log* log = nullptr;         ///< learns for what the session waits long; outlives it; may be null
    process::StopWatcher* watcher =
        nullptr;  ///< learns what the session waits for, may cancel it, and outlives it
    std::string program = "mailroom collect";  ///< its application_name, before ` USER@HOST:PID`
    TokenDetail detail{};
    bool writes_csv = false;  ///< a line has no place for a token without a signature

    /// Unequal setups make different sessions.
    bool operator==(const Setup&) const = default;
  };

  /// Connects, checks that no pooler shares the session (see pooler.hpp), checks the schema, and
  /// the trigger and sequences that give tokens their ids, attaches to the queues and listens on the channel.
  /// Throws ConnectionLost, Error(schema) when a precondition fails, as require_signed_tokens() with
  /// `writes_csv`, DatabaseError MR001 for an unknown queue and MR006 when another session holds this
  /// session's lock.
  explicit PgQueueSession(const Setup& setup);

  /// Throws as require_unsigned_tokens(), for each of its queues.
  void require_no_links();

  std::vector<queue::QueueRecord> definitions() override;
  std::vector<std::string> action_names() const override { return fetch_->action_names(); }
  ClaimReply claim(const ClaimRequest& request) override;
  void fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) override;
  /// Reads a large batch in a second session, which it opens when it first needs one.
  std::optional<ClaimReply> fetch_and_claim(const Lease& lease,
                                            const std::function<void(const TokenRow&)>& each,
                                            const NextClaim& next) override;
  bool arrange(Waking waking) override;
  int release() override;
  Notified take_notifications() override;
  std::vector<SinkState> share(const std::vector<SinkState>& news, const std::vector<std::string>& names,
                               std::optional<Milliseconds> probe) override;
  void announce(const std::vector<std::string>& sinks) override;
  std::vector<std::int64_t> begin(const std::vector<Lease>& leases,
                                  const std::vector<std::string>& sinks) override;
  std::vector<WithheldToken> withheld(const std::vector<std::int64_t>& tokens) override;
  void keep(const std::vector<Lease>& leases) override;
  void report(const Receipt& late) override;
  void record(const std::string& kind, const std::string& details) override;
  std::optional<std::int64_t> newest_batch() override;
  void check_health() override;
  int socket() const override { return connection_->socket(); }

 private:
  static std::unique_ptr<db::Connection> connect(const Setup& setup);
  void watch_waits(const Setup& setup);
  /// Checks that it may claim, and attaches to the queues. Returns its number as a collector.
  int attach(const Setup& setup);
  /// The batch of the last claim if it has this lease, with the rows that came with it.
  ClaimedBatch take_batch(const Lease& lease);
  /// Adds to a new lease with which sinks it and the leases before have begun.
  void complete(std::optional<Lease>& lease);
  /// Keep the result for as long as a statement runs.
  process::StopWatcher::Wait wait(Milliseconds patience = process::StopWatcher::moment) {
    return {watcher_, process::Awaited::database, connection_.get(), patience};
  }

  process::StopWatcher* watcher_;
  std::vector<std::string> queues_;
  std::string channel_;
  std::unique_ptr<db::Connection> connection_;
  std::optional<db::WaitWatch> waits_{};
  std::optional<ClaimStatement> claim_{};
  std::optional<BatchFetch> fetch_{};
  ClaimedBatch claimed_;  ///< of the last claim
  bool delivers_;
  std::vector<std::string> announced_{};  ///< sinks with which new leases begin
  std::optional<std::string>
      silent_{};                   ///< array of transactions that may not have notified; nullopt: unknown
  std::set<std::string> heard_{};  ///< payloads that no call has returned yet
};

}  // namespace mailroom::claim
