#include <random>

#include "consumer/collector.hpp"
#include "db/errors.hpp"
#include "support/catch.hpp"
#include "support/collector_rig.hpp"

namespace mailroom::test::collector_fault_test {

using namespace std::chrono_literals;
using test::Call;
using test::Claiming;
using test::CollectorRig;
using test::FakeEnvironment;
using test::FakeServer;
using test::ServerFault;
using test::ServerOperation;

namespace {

/// Some of everything: tokens at the start, full batches, remainders, abandoned batches, and idle time.
void script(CollectorRig& rig) {
  rig.limits.wait_for_database = 10s;
  rig.server.add_tokens(4);
  rig.environment.at(100ms, [&] { rig.server.add_tokens(3); });
  rig.environment.at(150ms, [&] { rig.server.add_tokens(1); });
  rig.environment.at(300ms, [&] { rig.server.add_tokens(2, false); });
  rig.environment.at(2s, [&] { rig.server.add_abandoned(2); });
  rig.environment.at(2100ms, [&] { rig.server.add_tokens(1); });
  rig.environment.at(7500ms, [&] { rig.server.add_tokens(8); });
  rig.stop_at(20s);
}

/// The oracle: every token was emitted once, and the server has recorded it.
void check_delivery(const CollectorRig& rig) {
  REQUIRE(rig.each_emitted_once());
  REQUIRE(rig.server.open_batches() == 0);
  REQUIRE(rig.server.waiting() == 0);
}

[[noreturn]] void refuse_to_write() {
  throw db::DatabaseError(ExitCode::failed, "cannot execute UPDATE in a read-only transaction",
                          "the server is a standby or read-only: connect to the primary", "25006");
}

/// The error of a claim that was cancelled while it waited.
ServerFault refuse_lock() {
  throw db::DatabaseError(ExitCode::failed, "canceling statement due to user request", "", "57014");
}

/// A collector beside the one under test, which emits every batch at once.
class Rival {
 public:
  Rival(FakeServer& server, FakeEnvironment& environment) : server_(server), environment_(environment) {}

  void step() {
    try {
      if (!session_) connect();
      const bool take_over = environment_.now() >= take_over_from_;
      const auto reply =
          session_->claim({.limit = 3, .partial = true, .take_over = take_over, .receipt = receipt_});
      receipt_.reset();
      voids_ += reply.receipt_void ? 1 : 0;
      if (!reply.lease) return;
      session_->fetch(*reply.lease, [&](const claim::TokenRow& row) { ++emitted_[row.id]; });
      receipt_ = claim::Receipt{*reply.lease, {.emitted = 1}};
    } catch (const db::ConnectionLost&) {
      session_.reset();
    }
  }

  const std::map<std::int64_t, int>& emitted() const { return emitted_; }
  int voids() const { return voids_; }

 private:
  void connect() {
    session_ = server_.connect();
    take_over_from_ = environment_.now() + 1500ms;
  }

  FakeServer& server_;
  FakeEnvironment& environment_;
  std::unique_ptr<claim::QueueSession> session_;
  std::optional<claim::Receipt> receipt_;
  TimePoint take_over_from_{};
  std::map<std::int64_t, int> emitted_;
  int voids_ = 0;
};

/// As a sender whose mails wait for the record of their lease when the next claim is due.
class AskingSink final : public consumer::Sink {
 public:
  explicit AskingSink(Output& output) : lines_(compose::make_jsonl_encoder(), output) {}

  void attend(claim::LeaseRecord& record) override { record_ = &record; }
  void begin(const claim::Lease& lease, int line_limit) override { lines_.begin(lease, line_limit); }
  void add(const claim::TokenRow& row, std::string_view token) override { lines_.add(row, token); }
  void forget() override { lines_.forget(); }
  consumer::BatchOutcome finish(const std::function<void()>& when_slow) override {
    return lines_.finish(when_slow);
  }
  bool is_ready() const override { return true; }
  void ask() override { record_->begin({}, {"relay"}); }
  void consult(claim::SinkBoard& board, bool /*heard*/) override { board.announce({"relay"}); }

 private:
  carriers::LineSink lines_;
  claim::LeaseRecord* record_ = nullptr;
};

}  // namespace

TEST_CASE("a session that ends while a sink asks it is replaced") {
  for (const auto fault : {ServerFault::lost_request, ServerFault::lost_reply}) {
    CollectorRig rig;
    rig.server.on_call = [&](const Call& call) {
      const bool is_chosen = call.operation == ServerOperation::begin && call.nth % 3 == 0 && call.nth < 12;
      return is_chosen ? fault : ServerFault::none;
    };
    script(rig);
    auto setup = rig.setup();
    setup.make_sink = [&rig] { return std::make_unique<AskingSink>(rig.output); };
    consumer::Collector(std::move(setup), rig.limits, rig.reload, rig.environment, rig.log).run();
    check_delivery(rig);
    CHECK(rig.logged("connection lost"));
    CHECK(rig.server.sessions() > 3);
  }
}

TEST_CASE("a failed first connection is an error at once, unless the collector may wait") {
  struct Start {
    Milliseconds away, wait;
    bool connects;
  };
  for (const auto& [away, wait, connects] :
       {Start{1ms, 0ms, false}, Start{3s, 10s, true}, Start{30s, 10s, false}}) {
    CollectorRig rig;
    rig.server.go_away(away);
    rig.server.add_tokens(1);
    rig.limits = {.once = true, .wait_for_database = wait};
    if (connects) {
      rig.run();
      CHECK(rig.environment.elapsed() <= away + 1s);
    } else {
      CHECK_THROWS_AS(rig.run(), db::ConnectionLost);
      CHECK(rig.environment.elapsed() >= wait);
      CHECK(rig.environment.elapsed() <= wait + 1s);
    }
    CHECK(rig.each_emitted_once() == connects);
  }
}

TEST_CASE("a stop ends the wait for the database") {
  CollectorRig rig;
  rig.server.go_away(1h);
  rig.limits.wait_for_database = 1h;
  rig.stop_at(2s);
  rig.run();
  CHECK(rig.environment.elapsed() == 2s);
}

TEST_CASE("a long outage is logged once, and then less and less often") {
  CollectorRig rig;
  rig.environment.at(1s, [&] { rig.server.go_away(60s); });
  rig.stop_at(70s);
  rig.run();
  const auto told = [text = rig.log_text.str()](const std::string& what) {
    int times = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++times;
    return times;
  };
  CHECK(told("connection lost") == 1);
  CHECK(told("still trying") == 3);
  CHECK(told("still trying for=40s") == 1);
  CHECK(told(" connected\n") == 2);
}

TEST_CASE("a stop whose claim is cancelled acknowledges without the queue's lock") {
  CollectorRig rig;
  rig.server.add_tokens(3);
  rig.server.on_call = [&](const Call& call) {
    if (call.operation != ServerOperation::claim || call.nth < 2) return ServerFault::none;
    rig.environment.request_stop();
    return rig.server.claims().back().without_lock ? ServerFault::none : refuse_lock();
  };
  rig.run();
  CHECK(rig.server.claims().size() == 4);
  CHECK(rig.server.claims().back().limit == 0);
  CHECK(rig.environment.elapsed() == 0ms);
  CHECK_FALSE(rig.logged("retrying"));
  check_delivery(rig);
}

TEST_CASE("a stop that cannot acknowledge at all logs it, and the batch is emitted again") {
  CollectorRig rig;
  rig.server.add_tokens(3);
  rig.server.on_call = [&](const Call& call) {
    if (call.operation != ServerOperation::claim || call.nth < 2) return ServerFault::none;
    rig.environment.request_stop();
    return refuse_lock();
  };
  CHECK_THROWS_AS(rig.run(), Error);
  CHECK(rig.environment.elapsed() == 0ms);
  CHECK(rig.logged("the last batch is written but not acknowledged: it will be emitted again"));
  CHECK(rig.server.open_batches() == 1);
}

TEST_CASE("whichever call loses the connection, before or after its effect, nothing is lost or repeated") {
  const auto claiming = GENERATE(Claiming::in_turn, Claiming::with_two_open, Claiming::ahead_with_two_open,
                                 Claiming::ahead_before, Claiming::ahead_after);
  CollectorRig undisturbed;
  undisturbed.make_claims(claiming);
  script(undisturbed);
  undisturbed.run();
  check_delivery(undisturbed);
  const int calls = undisturbed.server.calls();
  REQUIRE(calls > 40);
  for (int at = 1; at <= calls; ++at) {
    for (const auto fault : {ServerFault::lost_request, ServerFault::lost_reply}) {
      for (const auto linger : {0ms, 700ms, 3000ms}) {
        INFO("call " << at << (fault == ServerFault::lost_reply ? " after" : " before")
                     << " its effect, the server keeps the session " << linger.count() << " ms");
        CollectorRig rig;
        rig.make_claims(claiming);
        rig.server.linger = linger;
        rig.server.on_call = [&](const Call& call) { return call.number == at ? fault : ServerFault::none; };
        script(rig);
        rig.run();
        check_delivery(rig);
        REQUIRE(rig.logged(at == 1 ? "waiting for the database" : "lost"));
      }
    }
  }
}

TEST_CASE("repeated connection losses lose and repeat nothing") {
  const auto claiming = GENERATE(Claiming::in_turn, Claiming::with_two_open, Claiming::ahead_with_two_open,
                                 Claiming::ahead_before, Claiming::ahead_after);
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto rate = 5 + random() % 25;
    CollectorRig rig;
    rig.make_claims(claiming);
    rig.server.linger = Milliseconds(random() % 2 == 0 ? 0 : random() % 2000);
    rig.server.claim_takes = Milliseconds(random() % 20);
    rig.server.on_call = [&](const Call&) {
      if (rig.environment.elapsed() > 10s || random() % 100 >= rate) return ServerFault::none;
      return random() % 2 == 0 ? ServerFault::lost_request : ServerFault::lost_reply;
    };
    rig.limits.wait_for_database = 1min;
    for (int i = 0; i < 10; ++i) {
      rig.environment.at(Milliseconds(random() % 9000),
                         [&rig, count = static_cast<int>(random() % 6), notify = random() % 2 == 0] {
                           rig.server.add_tokens(count, notify);
                         });
    }
    rig.stop_at(40s);
    rig.run();
    check_delivery(rig);
  }
}

TEST_CASE("after a refused write the collector reconnects, which may lead to another server") {
  const auto claiming = GENERATE(Claiming::in_turn, Claiming::with_two_open, Claiming::ahead_with_two_open,
                                 Claiming::ahead_before, Claiming::ahead_after);
  CollectorRig undisturbed;
  undisturbed.make_claims(claiming);
  script(undisturbed);
  undisturbed.run();
  const int calls = undisturbed.server.calls();
  for (int at = 2; at <= calls; ++at) {
    INFO("from call " << at << " on");
    CollectorRig rig;
    rig.make_claims(claiming);
    // The refusals of a server that is no longer or not yet the primary: three calls of any kind.
    rig.server.on_call = [&](const Call& call) -> ServerFault {
      if (call.operation != ServerOperation::take_notifications && call.number >= at && call.number < at + 3)
        refuse_to_write();
      return ServerFault::none;
    };
    script(rig);
    rig.run();
    check_delivery(rig);
    if (!rig.logged("the server accepts no writes")) continue;
    REQUIRE(rig.logged("cannot execute UPDATE in a read-only transaction"));
    REQUIRE(rig.logged("connect to the primary"));
  }
}

TEST_CASE("a server that refuses writes is an error at the start, unless the collector may wait") {
  for (const auto wait : {0ms, 10'000ms}) {
    CollectorRig rig;
    rig.server.add_tokens(1);
    rig.server.on_call = [&](const Call&) -> ServerFault {
      if (rig.environment.elapsed() < 3s) refuse_to_write();
      return ServerFault::none;
    };
    rig.limits = {.once = true, .wait_for_database = wait};
    if (wait > 0ms) {
      rig.run();
      CHECK(rig.each_emitted_once());
      CHECK(rig.logged("waiting for the database"));
    } else {
      CHECK_THROWS_AS(rig.run(), db::DatabaseError);
    }
  }
}

TEST_CASE("restarts of the server lose and repeat nothing between two collectors") {
  const auto claiming = GENERATE(Claiming::in_turn, Claiming::with_two_open, Claiming::ahead_with_two_open,
                                 Claiming::ahead_before, Claiming::ahead_after);
  int shared = 0;  // schedules in which both collectors emitted tokens
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    CollectorRig rig;
    rig.make_claims(claiming);
    Rival rival(rig.server, rig.environment);
    rig.server.claim_takes = 5ms;
    for (int i = 0; i < 30; ++i)
      rig.environment.at(Milliseconds(random() % 15'000), [&] { rig.server.add_tokens(2); });
    for (const auto base : {3s, 8s, 13s}) {
      rig.environment.at(base + Milliseconds(random() % 2000),
                         [&rig, away = Milliseconds(random() % 1500)] { rig.server.go_away(away); });
    }
    for (auto time = 0ms; time < 30s; time += 50ms + Milliseconds(random() % 300))
      rig.environment.at(time, [&] { rival.step(); });
    rig.stop_at(32s);
    rig.run();
    auto emitted = rig.emitted();
    for (const auto& [id, times] : rival.emitted())
      emitted[id] += times;
    REQUIRE(emitted.size() == 60);
    for (const auto& [id, times] : emitted) {
      INFO("token " << id);
      REQUIRE(times == 1);
    }
    REQUIRE(rival.voids() == 0);
    shared += rival.emitted().empty() || rig.emitted().empty() ? 0 : 1;
    REQUIRE(rig.server.open_batches() == 0);
  }
  CHECK(shared > 200);
}

}  // namespace mailroom::test::collector_fault_test
