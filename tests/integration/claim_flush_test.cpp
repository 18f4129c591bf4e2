// Claims that wait for each other do not wait for each other's commit to be durable. Here no commit is, as
// long as the server waits for a standby that does not exist.

#include <future>
#include <string>

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::claim_flush_test {
namespace {

constexpr const char* queue_lock = "mailroom_lock_class('queue'), hashtext('mailroom')";

/// The server waits for its standbys, or does not.
void wait_for_standby(db::Connection& connection, bool waits) {
  const std::string names = waits ? "nobody" : "";
  connection.run("ALTER SYSTEM SET synchronous_standby_names = '" + names + "'");
  connection.run("SELECT pg_reload_conf()");
  REQUIRE(eventually(
      [&] { return connection.run("SELECT current_setting('synchronous_standby_names')").text() == names; }));
}

class Rig {
 public:
  Rig() {
    connection_ = database_.connect();
    connection_->run("INSERT INTO accounts (email, login) VALUES ('ada@example.org', 'ada')");
    // Nothing of this session waits for a standby.
    connection_->run("SET synchronous_commit = local");
    session_ = attach(database_);
  }
  ~Rig() {
    wait_for_standby(*connection_, false);
    if (claiming_.valid()) claiming_.wait();
  }

  /// Lets a claim wait for the lock of the queue, as another one would.
  void let_wait() {
    connection_->run(std::string("SELECT pg_advisory_lock(") + queue_lock + ")");
    begin_claim();
    REQUIRE(eventually([&] { return is_waiting("advisory"); }));
    connection_->run(std::string("SELECT pg_advisory_unlock(") + queue_lock + ")");
    claim();
  }
  void begin_claim() {
    claiming_ = std::async(std::launch::async, [this] {
      auto request = claim::ClaimRequest{.limit = 1, .partial = true};
      request.receipt = receipt_;
      const auto reply = session_->claim(request);
      receipt_.reset();
      if (reply.lease) receipt_ = claim::Receipt{.lease = *reply.lease, .counts = {.emitted = 1}};
      return reply;
    });
  }
  claim::ClaimReply claim() { return claiming_.get(); }
  bool has_ended() const { return claiming_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  /// True if the session of the claim waits for that event.
  bool is_waiting(const std::string& event) {
    return connection_
               ->run(
                   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = $1",
                   event)
               .value<int>() > 0;
  }
  bool is_lock_free() {
    return connection_
        ->run(std::string("SELECT pg_try_advisory_lock(") + queue_lock + ") AND pg_advisory_unlock(" +
              queue_lock + ")")
        .value<bool>();
  }
  int batches() {
    return connection_->run("SELECT count(*) FROM mailroom_batches WHERE ids <> '{}'").value<int>();
  }
  db::Connection& connection() { return *connection_; }

 private:
  TestDatabase database_;
  std::unique_ptr<db::Connection> connection_;
  std::unique_ptr<claim::PgQueueSession> session_;
  std::optional<claim::Receipt> receipt_{};
  std::future<claim::ClaimReply> claiming_;
};

}  // namespace

TEST_CASE("a claim that nobody waits for is durable before its lock is free") {
  Rig rig;
  wait_for_standby(rig.connection(), true);
  rig.begin_claim();
  REQUIRE(eventually([&] { return rig.is_waiting("SyncRep"); }));
  CHECK_FALSE(rig.is_lock_free());
  CHECK(rig.batches() == 0);
  CHECK_FALSE(rig.has_ended());
  wait_for_standby(rig.connection(), false);
  CHECK(rig.claim().lease);
}

TEST_CASE("a claim that waits for others is durable before it returns, but lets others claim before") {
  Rig rig;
  rig.let_wait();
  rig.connection().run("INSERT INTO accounts (email, login) VALUES ('bob@example.org', 'bob')");
  wait_for_standby(rig.connection(), true);
  rig.begin_claim();
  REQUIRE(eventually([&] { return rig.is_waiting("SyncRep"); }));
  CHECK(rig.is_lock_free());
  CHECK(rig.batches() == 2);
  CHECK_FALSE(rig.has_ended());
  wait_for_standby(rig.connection(), false);
  CHECK(rig.claim().lease);
}

}  // namespace mailroom::test::claim_flush_test
