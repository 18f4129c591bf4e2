#pragma once

#include <optional>
#include <string>

#include "consumer/queue_session.hpp"
#include "db/connection.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom {

/// The queue in PostgreSQL; uses the functions of migrations 5_queue_reading, 6_queue_claim and 13_waking.
class PgQueueSession final : public QueueSession {
 public:
  using Check = std::function<void(Connection&)>;

  /// Connects, checks that no pooler shares the session (see pooler.hpp), runs `check_schema`, checks the
  /// preconditions (see session_checks.hpp), attaches to `queue` and listens on `channel`. `fingerprint`, 16
  /// hexadecimal digits or empty, publishes which key this collector signs with. `watcher` learns what the
  /// session waits for and may cancel it; it must outlive this object. Throws ConnectionLost, Error(schema)
  /// when a precondition fails, DatabaseError MR001 for an unknown queue and MR006 when another session holds
  /// this session's lock.
  PgQueueSession(const std::string& conninfo, std::string queue, const std::string& channel,
                 const Check& check_schema, const std::string& fingerprint = {},
                 StopWatcher* watcher = nullptr);

  ClaimReply claim(const ClaimRequest& request) override;
  void fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) override;
  bool arrange(Waking waking) override;
  Notified take_notifications() override;
  void check_health() override;
  int socket() const override { return connection_.socket(); }

 private:
  /// A batch whose tokens came with the claim, one row per token.
  struct Claimed {
    Lease lease;
    pqxx::result rows;
  };

  void prepare_statements();
  pqxx::result run_claim(const char* statement, const ClaimRequest& request);
  ClaimReply acknowledge_alone(const Receipt& receipt);
  /// Keep the result for as long as a statement runs.
  StopWatcher::Wait wait(Milliseconds patience = StopWatcher::moment) {
    return {watcher_, Awaited::database, &connection_, patience};
  }
  void fetch_stream(const Lease& lease, const std::function<void(const TokenRow&)>& each);

  StopWatcher* watcher_;
  Connection connection_;
  std::string queue_;
  std::string channel_;
  std::optional<std::string> silent_;  ///< array of transactions that may not have notified; nullopt: unknown
  int collector_ = 0;
  bool is_streamed_ = false;        ///< how the batch of the last claim is fetched
  std::optional<Claimed> claimed_;  ///< nullopt if the batch is streamed
};

}  // namespace mailroom
