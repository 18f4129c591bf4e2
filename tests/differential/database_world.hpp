#pragma once

#include "claim/pg_queue_session.hpp"
#include "differential/queue_world.hpp"
#include "selection/id_range.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

/// A queue in PostgreSQL. Time passes by moving all times of the database back.
class DatabaseWorld final : public QueueWorld {
 public:
  /// Empties the database. `checks_all_gaps`: each claim looks at every gap, as it does whenever a
  /// transaction of the cluster has ended that was open at the last look.
  DatabaseWorld(const TestDatabase& database, bool checks_all_gaps);

  std::int64_t insert(int writer, const queue::Action* action) override;
  void commit(int writer, std::optional<int> lifetime) override;
  void roll_back(int writer) override;
  void flood(int count) override;
  void consume(std::int64_t token) override;
  void suspend_account_of(std::int64_t token) override;
  void remove(std::int64_t token) override;

  std::unique_ptr<claim::QueueSession> connect(bool delivers) override;
  void terminate(claim::QueueSession& session) override;
  void disconnect(std::unique_ptr<claim::QueueSession> session) override;

  void pass(int units) override;
  Rewound rewind(std::int64_t target) override;
  std::int64_t replay(const Ids& tokens) override;
  bool pause(bool paused) override;
  void define(const PlayedDefinition& definition) override;

  void prepare_claim() override;
  Snapshot snapshot(const Ids& batches) override;

 private:
  struct Writer {
    std::unique_ptr<db::Connection> connection{};
    Ids inserted{};
  };

  /// Waits for the end of the session of `pid`, and with it of its locks.
  void await_end(int pid);
  void read_queue(Snapshot& seen);
  void read_batches(Snapshot& seen, const Ids& batches);
  void read_deliveries(Snapshot& seen);

  const TestDatabase& database_;
  std::unique_ptr<db::Connection> connection_;
  bool checks_all_gaps_;
  std::map<int, Writer> writers_;
  std::set<std::int64_t> open_;
  std::set<std::int64_t> committed_;
  int accounts_ = 0;
  int sessions_ = 0;
  std::map<const claim::QueueSession*, int> pids_;  ///< of the sessions that have not ended
  std::map<int, int> session_of_;                   ///< by pid, of the same
};

}  // namespace mailroom::test
