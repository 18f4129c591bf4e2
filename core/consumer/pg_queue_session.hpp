#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "consumer/queue_session.hpp"
#include "db/connection.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom {

/// The queue in PostgreSQL; uses the functions of migrations 5_queue_reading, 6_queue_claim and 13_waking.
class PgQueueSession final : public QueueSession {
 public:
  /// How many tokens all consumers of a queue may take.
  struct Pace {
    std::chrono::duration<double> gap;  ///< between two tokens
    int burst = 1;                      ///< tokens at once
  };

  struct Setup {
    std::string conninfo;
    std::string queue;
    std::string channel;
    std::function<void(Connection&)> check_schema;
    std::string fingerprint{};       ///< 16 hexadecimal digits: publishes which key this collector signs with
    StopWatcher* watcher = nullptr;  ///< learns what the session waits for, may cancel it, and outlives it
    std::optional<Pace> pace{};      ///< only with `delivers`
    bool delivers = false;           ///< for a sink with outcomes
    /// In which to count the mails to each account; only with `delivers`.
    std::optional<Milliseconds> counted_period{};
  };

  /// Connects, checks that no pooler shares the session (see pooler.hpp), checks the schema and the
  /// preconditions (see session_checks.hpp), attaches to the queue and listens on the channel. Throws
  /// ConnectionLost, Error(schema) when a precondition fails, DatabaseError MR001 for an unknown queue and
  /// MR006 when another session holds this session's lock.
  explicit PgQueueSession(const Setup& setup);

  ClaimReply claim(const ClaimRequest& request) override;
  void fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) override;
  bool arrange(Waking waking) override;
  Notified take_notifications() override;
  std::vector<SinkState> share(const std::vector<SinkState>& news, const std::vector<std::string>& names,
                               std::optional<Milliseconds> probe) override;
  void check_health() override;
  int socket() const override { return connection_.socket(); }

 private:
  /// A batch whose tokens came with the claim, one row per token.
  struct Claimed {
    Lease lease;
    pqxx::result rows;
  };

  void prepare_statements(const Setup& setup);
  pqxx::result run_claim(const char* statement, const ClaimRequest& request);
  ClaimReply acknowledge_alone(const Receipt& receipt);
  /// Keep the result for as long as a statement runs.
  StopWatcher::Wait wait(Milliseconds patience = StopWatcher::moment) {
    return {watcher_, Awaited::database, &connection_, patience};
  }
  void fetch_stream(const Lease& lease, const std::function<void(const TokenRow&)>& each);

  StopWatcher* watcher_;
  bool delivers_;
  std::optional<Pace> pace_;
  Connection connection_;
  std::string queue_;
  std::string channel_;
  std::optional<std::string> silent_;  ///< array of transactions that may not have notified; nullopt: unknown
  int collector_ = 0;
  bool heard_of_sinks_ = false;
  bool is_streamed_ = false;        ///< how the batch of the last claim is fetched
  std::optional<Claimed> claimed_;  ///< nullopt if the batch is streamed
};

}  // namespace mailroom
