// The queue as every consumer uses it: a session that claims, and a second one that reads large batches.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "consumer/batch_reader.hpp"
#include "consumer/queue_session.hpp"
#include "db/connection.hpp"
#include "db/wait_watch.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom {

/// Queues in PostgreSQL; uses the functions of migrations 5_queue_reading, 6_queue_claim and 13_waking.
class PgQueueSession final : public QueueSession {
 public:
  struct Setup {
    DatabaseTarget conninfo;
    std::vector<std::string> queues;
    std::string channel;
    void (*check_schema)(Connection&) = nullptr;
    std::string fingerprint{};       ///< 16 hexadecimal digits: publishes which key this collector signs with
    Log* log = nullptr;              ///< learns for what the session waits long; outlives it; may be null
    StopWatcher* watcher = nullptr;  ///< learns what the session waits for, may cancel it, and outlives it
    std::string program = "mailroom collect";  ///< its application_name, before `@HOST:PID`
    bool delivers = false;                     ///< for a sink with outcomes
    bool with_creation = false;  ///< tokens have created_at, as with `delivers`; otherwise it is 0
    bool reads_newer = false;    ///< only with `delivers`: tokens have `newer`
    /// In which to count the mails to each account; only with `delivers`.
    std::optional<Milliseconds> counted_period{};

    /// Unequal setups make different sessions.
    bool operator==(const Setup&) const = default;
  };

  /// Connects, checks that no pooler shares the session (see pooler.hpp), checks the schema and the
  /// preconditions (see session_checks.hpp), attaches to the queues and listens on the channel. Throws
  /// ConnectionLost, Error(schema) when a precondition fails, DatabaseError MR001 for an unknown queue and
  /// MR006 when another session holds this session's lock.
  explicit PgQueueSession(const Setup& setup);
  ~PgQueueSession() override;
  PgQueueSession(const PgQueueSession&) = delete;
  PgQueueSession& operator=(const PgQueueSession&) = delete;

  std::vector<QueueDefinition> definitions() override;
  ClaimReply claim(const ClaimRequest& request) override;
  void fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) override;
  /// Opens a session for the reads when it is first asked for a large batch. Where that fails, claims and
  /// reads take turns.
  bool can_claim_ahead(const ClaimReply& reply) override;
  void begin_claim(const ClaimRequest& request) override;
  ClaimReply end_claim() override;
  bool arrange(Waking waking) override;
  Notified take_notifications() override;
  std::vector<SinkState> share(const std::vector<SinkState>& news, const std::vector<std::string>& names,
                               std::optional<Milliseconds> probe) override;
  void check_health() override;
  int socket() const override { return connection_.socket(); }

 private:
  struct Claimed {
    ClaimReply reply{};
    bool is_streamed = false;            ///< how its batch is fetched
    std::optional<pqxx::result> rows{};  ///< the tokens, if they came with the claim, one row per token
  };

  static std::unique_ptr<Connection> connect(const Setup& setup);
  void watch_waits();
  void prepare_statements(const Setup& setup);
  /// For any thread, while no other uses the connection.
  Claimed take(const ClaimRequest& request);
  ClaimReply keep(Claimed claimed);
  bool open_reader();
  /// Does the work in the reader's session, and in this one once its claim has ended. If it fails in the
  /// reader's, it is cancelled in this one.
  void work_in_both(const BatchReader::Work& work);
  /// Reads the tokens of a batch that was claimed ahead, if it is a large one.
  void read_ahead(const Claimed& claimed);
  pqxx::result run_claim(const char* statement, const ClaimRequest& request);
  const std::string& queue_of(const ClaimRequest& request) const {
    return request.queue.empty() ? queues_.front() : request.queue;
  }
  /// Replies are others' words, in any language.
  std::optional<std::string> storable_outcomes(const Receipt& receipt) const;
  ClaimReply acknowledge_alone(const Receipt& receipt);
  /// Keep the result for as long as a statement runs.
  StopWatcher::Wait wait(Milliseconds patience = StopWatcher::moment) {
    return {watcher_, Awaited::database, &connection_, patience};
  }

  StopWatcher* watcher_;
  Log* log_;
  DatabaseTarget target_;
  bool delivers_;
  bool with_creation_;
  std::unique_ptr<Connection> session_;
  Connection& connection_ = *session_;
  std::optional<WaitWatch> waits_{};
  std::vector<std::string> queues_;
  std::string channel_;
  std::optional<std::string> silent_;  ///< array of transactions that may not have notified; nullopt: unknown
  int collector_ = 0;
  std::set<std::string> heard_;  ///< payloads that no call has returned yet
  Claimed claimed_;              ///< the last claim
  bool may_open_reader_ = true;
  BatchReader batch_reader_;
  std::unique_ptr<Connection> reader_;  ///< reads large batches; null until there is one
  std::future<Claimed> claiming_;       ///< valid from begin_claim() to end_claim()
};

}  // namespace mailroom
