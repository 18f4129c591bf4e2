#pragma once

#include <optional>
#include <string>

#include "db/connection.hpp"
#include "queue/queue_session.hpp"
#include "queue/stop_watcher.hpp"

namespace mailroom {

/// The queue in PostgreSQL, by the functions of the migrations 5_queue_reading, 6_queue_claim and 13_waking.
class PgQueueSession final : public QueueSession {
 public:
  using Check = std::function<void(Connection&)>;

  /// Connects, makes sure that no pooler shares the session (see pooler.hpp), lets `check_schema` have a
  /// look, checks what the protocol rests on (see preflight.hpp), attaches to `queue` and listens on
  /// `channel`. `fingerprint`, 16 hexadecimal digits or nothing, tells whoever looks at the queue which key
  /// this collector signs with. `watcher`, which outlives this, is told what is waited for, and may cancel
  /// it.
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
  /// A batch whose tokens came with the claim, a row each.
  struct Claimed {
    Lease lease;
    pqxx::result rows;
  };

  void prepare_statements();
  pqxx::result run_claim(const char* statement, const ClaimRequest& request);
  ClaimReply acknowledge_alone(const Receipt& receipt);
  /// For as long as a statement runs.
  StopWatcher::Wait wait(Milliseconds patience = StopWatcher::moment) {
    return {watcher_, Awaited::database, &connection_, patience};
  }
  void fetch_stream(const Lease& lease, const std::function<void(const TokenRow&)>& each);

  StopWatcher* watcher_;
  Connection connection_;
  std::string queue_;
  std::string channel_;
  std::optional<std::string> silent_;  ///< transactions that may not have notified, an array; unless unknown
  int collector_ = 0;
  bool is_streamed_ = false;        ///< how the batch of the last claim is fetched
  std::optional<Claimed> claimed_;  ///< unless it is streamed
};

}  // namespace mailroom
