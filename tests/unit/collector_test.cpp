#include "consumer/collector.hpp"

#include <csignal>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

#include "db/errors.hpp"
#include "support/catch.hpp"
#include "support/collector_rig.hpp"

namespace mailroom::test::collector_test {

using namespace std::chrono_literals;
using test::Call;
using test::CollectorRig;
using test::ServerFault;
using test::ServerOperation;

namespace {

template <typename Thrown, typename Work>
Thrown thrown_by(Work work) {
  try {
    work();
  } catch (const Thrown& error) {
    return error;
  }
  throw std::logic_error("nothing was thrown");
}

/// Refuses the `nth` claim with `sqlstate`.
std::function<ServerFault(const Call&)> refuse_claim(int nth, const std::string& sqlstate) {
  return [nth, sqlstate](const Call& call) {
    if (call.operation == ServerOperation::claim && call.nth == nth)
      throw db::DatabaseError(ExitCode::failed, "the server said no", "", sqlstate);
    return ServerFault::none;
  };
}

std::function<ServerFault(const Call&)> fault_at(ServerOperation operation, int nth, ServerFault fault) {
  return [=](const Call& call) {
    return call.operation == operation && call.nth == nth ? fault : ServerFault::none;
  };
}

std::vector<std::size_t> line_sizes(const CollectorRig& rig) {
  std::vector<std::size_t> sizes;
  for (const auto& line : rig.lines())
    sizes.push_back(line.at("tokens").size());
  return sizes;
}

/// Stops the collector, or gives it a new configuration, when it makes its `nth` claim.
void run_until_claim(CollectorRig& rig, int nth, bool reloads) {
  rig.server.on_call = [&rig, nth, reloads](const Call& call) {
    if (call.operation == ServerOperation::claim && call.nth == nth) {
      if (reloads) rig.environment.request_reload();
      if (!reloads) rig.environment.request_stop();
    }
    return ServerFault::none;
  };
  rig.stop_at(1s);
  rig.run();
}

/// Its reader takes a second for each batch.
class SlowSink final : public consumer::Sink {
 public:
  SlowSink(Output& output, test::FakeEnvironment& environment)
      : lines_(compose::make_jsonl_encoder(), output), environment_(environment) {}

  void begin(const claim::Lease& lease, int line_limit) override { lines_.begin(lease, line_limit); }
  void add(const claim::TokenRow& row, std::string_view token) override { lines_.add(row, token); }
  void forget() override { lines_.forget(); }
  consumer::BatchOutcome finish(const std::function<void()>& when_slow) override {
    environment_.advance(1s);
    return lines_.finish(when_slow);
  }
  bool is_ready() const override { return lines_.is_ready(); }

 private:
  carriers::LineSink lines_;
  test::FakeEnvironment& environment_;
};

}  // namespace

TEST_CASE("a batch is acknowledged by the claim that follows its line") {
  CollectorRig rig;
  rig.server.add_tokens(7);
  rig.stop_at(100ms);
  rig.run();
  CHECK(line_sizes(rig) == std::vector<std::size_t>{3, 3, 1});
  CHECK(rig.each_emitted_once());
  const auto& claims = rig.server.claims();
  REQUIRE(claims.size() == 4);
  CHECK_FALSE(claims[0].receipt);
  for (std::size_t i = 1; i < claims.size(); ++i) {
    REQUIRE(claims[i].receipt);
    CHECK(claims[i].receipt->lease == claim::Lease{static_cast<std::int64_t>(i), 1, "mailroom"});
    CHECK(claims[i].receipt->counts.emitted == (i < 3 ? 3 : 1));
    CHECK(claims[i].limit == 3);
  }
  CHECK(rig.server.open_batches() == 0);
}

TEST_CASE("while a backlog lasts, a sink with two open batches has one when the next is claimed") {
  CollectorRig rig;
  rig.two_open = true;
  rig.server.add_tokens(7);
  rig.limits.once = true;
  std::size_t claims_before_the_first_line = 0;
  rig.server.on_call = [&](const Call& call) {
    if (call.operation == ServerOperation::claim && rig.lines().empty()) ++claims_before_the_first_line;
    return ServerFault::none;
  };
  rig.run();
  CHECK(claims_before_the_first_line == 2);
  CHECK(line_sizes(rig) == std::vector<std::size_t>{3, 3, 1});
  CHECK(rig.each_emitted_once());
  CHECK(rig.server.open_batches() == 0);
  std::vector<std::pair<std::int64_t, std::int64_t>> held_and_acknowledged;
  for (const auto& claim : rig.server.claims())
    held_and_acknowledged.emplace_back(claim.held.value_or(0),
                                       claim.receipt ? claim.receipt->lease.batch : 0);
  CHECK(held_and_acknowledged ==
        std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {1, 0}, {2, 1}, {3, 2}, {0, 3}});
}

TEST_CASE("while a backlog lasts, the next batch is claimed while one is read") {
  for (const auto claiming : {test::Claiming::ahead_before, test::Claiming::ahead_after}) {
    CollectorRig rig;
    rig.make_claims(claiming);
    rig.server.add_tokens(13);
    rig.limits.once = true;
    std::vector<std::size_t> lines_at_claim;
    rig.server.on_call = [&](const Call& call) {
      if (call.operation == ServerOperation::claim) lines_at_claim.push_back(rig.lines().size());
      return ServerFault::none;
    };
    rig.run();
    CHECK(line_sizes(rig) == std::vector<std::size_t>{3, 3, 3, 3, 1});
    CHECK(rig.each_emitted_once());
    CHECK(rig.server.open_batches() == 0);
    // Not before a batch has been written, which shows how long that takes.
    CHECK(lines_at_claim == std::vector<std::size_t>{0, 1, 1, 2, 3, 4, 5});
    std::string held_and_acknowledged;
    for (const auto& claim : rig.server.claims()) {
      held_and_acknowledged +=
          fmt::format("{},{} ", claim.held.value_or(0), claim.receipt ? claim.receipt->lease.batch : 0);
    }
    CHECK(held_and_acknowledged == "0,0 0,1 2,0 3,2 4,3 0,4 0,5 ");
  }
}

TEST_CASE("a sink with two open batches is claimed for while it gets the tokens of one") {
  CollectorRig rig;
  rig.make_claims(test::Claiming::ahead_with_two_open);
  rig.server.add_tokens(13);
  rig.limits.once = true;
  std::vector<std::size_t> lines_at_claim;
  auto before = ServerOperation::connect;
  int after_a_row = 0;
  rig.server.on_call = [&](const Call& call) {
    if (call.operation == ServerOperation::claim) {
      lines_at_claim.push_back(rig.lines().size());
      after_a_row += before == ServerOperation::row ? 1 : 0;
    }
    before = call.operation;
    return ServerFault::none;
  };
  rig.run();
  CHECK(line_sizes(rig) == std::vector<std::size_t>{3, 3, 3, 3, 1});
  CHECK(rig.each_emitted_once());
  CHECK(rig.server.open_batches() == 0);
  CHECK(after_a_row == 4);
  // The batch before is done then, and has its receipt.
  CHECK(lines_at_claim == std::vector<std::size_t>{0, 0, 1, 2, 3, 4, 5});
  std::string held_and_acknowledged;
  for (const auto& claim : rig.server.claims()) {
    held_and_acknowledged +=
        fmt::format("{},{} ", claim.held.value_or(0), claim.receipt ? claim.receipt->lease.batch : 0);
  }
  CHECK(held_and_acknowledged == "0,0 1,0 2,1 3,2 4,3 5,4 0,5 ");
}

TEST_CASE("a claim ahead takes no more than its sink has room for beside the batch that it gets") {
  CollectorRig rig;
  rig.make_claims(test::Claiming::ahead_with_two_open);
  rig.room = 4;
  rig.server.add_tokens(8);
  rig.limits.once = true;
  rig.run();
  CHECK(rig.each_emitted_once());
  // The room of this sink is what it takes beside what it has.
  CHECK(rig.server.claims()[1].limit == 2);
}

TEST_CASE("nothing is claimed ahead for a reader that is slower than the database") {
  CollectorRig rig;
  rig.make_claims(test::Claiming::ahead_before);
  rig.server.add_tokens(13);
  rig.limits.once = true;
  auto setup = rig.setup();
  setup.make_sink = [&]() -> std::unique_ptr<consumer::Sink> {
    return std::make_unique<SlowSink>(rig.output, rig.environment);
  };
  consumer::Collector(std::move(setup), rig.limits, rig.reload, rig.environment, rig.log).run();
  CHECK(rig.each_emitted_once());
  for (const auto& claim : rig.server.claims())
    CHECK_FALSE(claim.held);
}

TEST_CASE("a stop and a new configuration wait for the batch that was claimed ahead, and claim no other") {
  for (const bool reloads : {false, true}) {
    CollectorRig rig;
    rig.make_claims(test::Claiming::ahead_before);
    rig.server.add_tokens(30);
    CAPTURE(reloads);
    run_until_claim(rig, 4, reloads);
    CHECK(rig.server.open_batches() == 0);
    CHECK(rig.emitted().size() == (reloads ? 30 : 12));
    CHECK(rig.logged("configuration reloaded") == reloads);
    for (const auto& [id, batch] : rig.server.batches())
      CHECK(batch.attempt == 1);
  }
}

TEST_CASE("a batch is full if it has as many tokens as its sink has room for") {
  struct Triggers : consumer::ConsumerObserver {
    void finished(const consumer::FinishedBatch& batch) override {
      all.emplace_back(consumer::batch_trigger_name(batch.trigger));
    }
    std::vector<std::string> all;
  } triggers;
  CollectorRig rig;
  rig.two_open = true;
  rig.room = 2;
  rig.limits.once = true;
  rig.server.add_tokens(5);
  consumer::Collector(rig.setup(), rig.limits, rig.reload, rig.environment, rig.log, triggers).run();
  CHECK(line_sizes(rig) == std::vector<std::size_t>{2, 2, 1});
  CHECK(triggers.all == std::vector<std::string>{"full", "full", "drain"});
}

TEST_CASE("a batch that may be the last of a backlog does not stay open") {
  CollectorRig rig;
  rig.two_open = true;
  rig.server.add_tokens(2);
  rig.stop_at(100ms);
  rig.run();
  REQUIRE(rig.server.claims().size() >= 2);
  CHECK(rig.server.claims()[1].receipt);
  CHECK_FALSE(rig.server.claims()[1].held);
}

TEST_CASE("a stop and a new configuration finish two open batches") {
  for (const bool reloads : {false, true}) {
    CollectorRig rig;
    rig.two_open = true;
    rig.server.add_tokens(9);
    CAPTURE(reloads);
    run_until_claim(rig, 2, reloads);
    CHECK(rig.server.open_batches() == 0);
    CHECK(rig.emitted().size() == (reloads ? 9 : 6));
  }
}

TEST_CASE("a remainder waits for its timeout and a full batch is emitted at once") {
  CollectorRig rig;
  rig.environment.at(1000ms, [&] { rig.server.add_tokens(4); });
  rig.environment.at(1001ms, [&] { CHECK(line_sizes(rig) == std::vector<std::size_t>{3}); });
  rig.environment.at(5999ms, [&] { CHECK(line_sizes(rig) == std::vector<std::size_t>{3}); });
  rig.stop_at(6001ms);
  rig.run();
  CHECK(line_sizes(rig) == std::vector<std::size_t>{3, 1});
}

TEST_CASE("a batch that was written when the connection was lost is acknowledged after the reconnect") {
  for (const auto fault : {ServerFault::lost_request, ServerFault::lost_reply}) {
    CollectorRig rig;
    rig.server.add_tokens(3);
    rig.server.on_call = fault_at(ServerOperation::claim, 2, fault);
    rig.stop_at(10s);
    rig.run();
    CHECK(rig.each_emitted_once());
    CHECK(rig.server.batches().at(1).attempt == 1);
    CHECK(rig.server.open_batches() == 0);
    REQUIRE(rig.server.claims().size() > 2);
    CHECK(rig.server.claims()[2].receipt->lease == claim::Lease{1, 1, "mailroom"});
    CHECK(rig.logged("connection lost"));
  }
}

TEST_CASE("a batch that another collector has taken over is not acknowledged, and a warning is logged") {
  CollectorRig rig;
  rig.server.add_tokens(3);
  rig.server.on_call = fault_at(ServerOperation::claim, 2, ServerFault::lost_request);
  std::unique_ptr<claim::QueueSession> rival;
  rig.environment.at(1ms, [&] {
    rival = rig.server.connect();
    CHECK(rival->claim({.limit = 3}).lease == claim::Lease{1, 2, ""});
  });
  rig.stop_at(5s);
  rig.run();
  CHECK(rig.logged("taken over before it was acknowledged"));
  CHECK(rig.server.open_batches() == 1);
  CHECK_FALSE(rival->claim({.receipt = claim::Receipt{{1, 2}, {}}}).receipt_void);
}

TEST_CASE("abandoned batches are taken over at once at the start") {
  CollectorRig rig;
  rig.server.add_abandoned(2);
  rig.stop_at(10ms);
  rig.run();
  CHECK(rig.each_emitted_once());
  CHECK(rig.server.batches().at(1).attempt == 2);
  CHECK(rig.logged("taking over a batch"));
}

TEST_CASE("no abandoned batches are taken over for 1.5 s after a reconnect") {
  CollectorRig rig;
  rig.environment.at(100ms, [&] {
    rig.server.add_abandoned(2);
    rig.server.go_away(300ms);
  });
  rig.stop_at(10s);
  rig.run();
  const auto& claims = rig.server.claims();
  std::optional<TimePoint> connected_again;
  std::optional<TimePoint> taking_over;
  for (std::size_t i = 1; i < claims.size(); ++i) {
    const auto time = rig.server.claim_times()[i];
    if (!connected_again) connected_again = time;
    if (!taking_over && claims[i].take_over) taking_over = time;
    CHECK(claims[i].take_over == (time >= *connected_again + 1500ms));
  }
  REQUIRE(taking_over);
  CHECK(*taking_over <= *connected_again + 2500ms);
  CHECK(rig.each_emitted_once());
}

TEST_CASE("with --once all due tokens are emitted, and acknowledged at the end") {
  for (const int tokens : {0, 1, 3, 7}) {
    INFO(tokens << " tokens");
    CollectorRig rig;
    rig.limits.once = true;
    rig.server.add_tokens(tokens);
    rig.server.add_abandoned(2);
    rig.server.on_call = fault_at(ServerOperation::claim, 3, ServerFault::lost_reply);
    rig.run();
    CHECK(rig.each_emitted_once());
    CHECK(rig.server.open_batches() == 0);
    CHECK(rig.server.waiting() == 0);
    CHECK(rig.environment.elapsed() < 4s);
  }
}

TEST_CASE(
    "with --max-batches exactly that many lines are emitted and acknowledged, and no more are claimed") {
  for (const int batches : {1, 2}) {
    CollectorRig rig;
    rig.limits.max_batches = batches;
    rig.server.add_tokens(20);
    rig.run();
    CHECK(rig.lines().size() == static_cast<std::size_t>(batches));
    CHECK(rig.server.batches().size() == static_cast<std::size_t>(batches));
    CHECK(rig.server.open_batches() == 0);
  }
}

TEST_CASE("a stop finishes and acknowledges the current batch") {
  CollectorRig rig;
  rig.server.add_tokens(7);
  rig.server.on_call = [&](const Call& call) {
    if (call.operation == ServerOperation::fetch && call.nth == 1) rig.environment.request_stop();
    return ServerFault::none;
  };
  rig.run();
  CHECK(line_sizes(rig) == std::vector<std::size_t>{3});
  CHECK(rig.server.open_batches() == 0);
  CHECK(rig.server.claims().back().limit == 0);
  CHECK(rig.server.waiting() == 4);
}

TEST_CASE("a stop during an outage acknowledges the last batch after a reconnect, or gives up") {
  for (const auto away : {Milliseconds(2000), Milliseconds(60'000)}) {
    CollectorRig rig;
    rig.server.add_tokens(3);
    rig.server.on_call = [&](const Call& call) {
      if (call.operation == ServerOperation::claim && call.nth == 2) {
        rig.server.go_away(away);
        rig.environment.request_stop();
      }
      return ServerFault::none;
    };
    if (away < 5s) {
      rig.run();
      CHECK(rig.server.open_batches() == 0);
    } else {
      CHECK(thrown_by<db::ConnectionLost>([&] { rig.run(); }).code() == ExitCode::database);
      CHECK(rig.logged("written but not acknowledged"));
      CHECK(rig.environment.elapsed() < 7s);
    }
    CHECK(rig.each_emitted_once());
  }
}

TEST_CASE("a closed output leaves the batch unacknowledged") {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  close(ends[0]);
  CollectorRig rig;
  rig.output = Output(ends[1]);
  rig.server.add_tokens(3);
  CHECK(thrown_by<Error>([&] { rig.run(); }).code() == ExitCode::output_closed);
  CHECK(rig.server.open_batches() == 1);
  CHECK(rig.server.claims().size() == 1);
  close(ends[1]);
  std::signal(SIGPIPE, before);
}

TEST_CASE("a file that ends within a line gets a newline first, any other file does not") {
  for (const std::string text : {"", "cut short", "whole\n"}) {
    CollectorRig rig;
    rig.limits.once = true;
    rig.server.add_tokens(1);
    rig.output.write(text);
    rig.run();
    const auto before = text == "cut short" ? "cut short\n" : text;
    CHECK(rig.file.text().starts_with(before + R"({"batch":)"));
  }
}

TEST_CASE("an error of a statement that a retry may fix is survived, any other is not") {
  for (const std::string sqlstate : {"57014", "55P03", "40P01", "40001"}) {
    INFO(sqlstate);
    CollectorRig rig;
    rig.server.add_tokens(3);
    rig.server.on_call = refuse_claim(2, sqlstate);
    rig.stop_at(10s);
    rig.run();
    CHECK(rig.each_emitted_once());
    CHECK(rig.server.open_batches() == 0);
    CHECK(rig.logged("retrying"));
  }
  for (const std::string sqlstate : {"42501", "MR002", "42P01"}) {
    CollectorRig rig;
    rig.server.add_tokens(3);
    rig.server.on_call = refuse_claim(2, sqlstate);
    CHECK(thrown_by<db::DatabaseError>([&] { rig.run(); }).sqlstate() == sqlstate);
  }
}

TEST_CASE("a transient error of a statement does not lose the last acknowledgement") {
  CollectorRig rig;
  rig.limits.max_batches = 1;
  rig.server.add_tokens(3);
  rig.server.on_call = refuse_claim(2, "57014");
  CHECK_NOTHROW(rig.run());
  CHECK(rig.server.open_batches() == 0);
}

TEST_CASE("a fatal error does not prevent the acknowledgement of the previous batch") {
  CollectorRig rig;
  rig.server.add_tokens(3);
  rig.server.on_call = refuse_claim(2, "42501");
  CHECK_THROWS_AS(rig.run(), db::DatabaseError);
  CHECK(rig.lines().size() == 1);
  CHECK(rig.server.open_batches() == 0);
}

TEST_CASE("a silent connection is checked at each health-check interval") {
  CollectorRig rig;
  rig.server.claim_takes = 0ms;
  rig.reload = [&] {
    auto setup = rig.setup();
    setup.turns.batcher.poll_interval = 1h;
    return setup;
  };
  rig.environment.at(1ms, [&] { rig.environment.request_reload(); });
  int checks = 0;
  rig.server.on_call = [&](const Call& call) {
    checks += call.operation == ServerOperation::check_health ? 1 : 0;
    return ServerFault::none;
  };
  rig.stop_at(10min);
  rig.run();
  CHECK(checks == 9);
}

TEST_CASE("a scheduled message leaves while a transaction keeps a gap open, or another collector a batch") {
  const bool has_gap = GENERATE(true, false);
  CollectorRig rig;
  rig.environment.at(100ms, [&] {
    if (has_gap) rig.server.draw_token();
    rig.server.add_tokens(1);
  });
  std::unique_ptr<claim::QueueSession> other;
  rig.environment.at(90ms, [&] {
    if (has_gap) return;
    other = rig.server.connect();
    rig.server.add_tokens(1, false);
    other->claim({.limit = 1, .partial = true});
  });
  rig.server.schedule(rig.environment.now() + 10s);
  rig.environment.at(18s, [&] {
    CHECK(rig.server.scheduled() == 0);
    CHECK(rig.emitted().size() == 2);
  });
  rig.stop_at(19s);
  rig.run();
}

}  // namespace mailroom::test::collector_test
