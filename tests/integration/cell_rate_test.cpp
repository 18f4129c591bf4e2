// The generic cell rate algorithm of the claim, in play time: random claims of several sessions, between
// which moving mailroom_budgets.taken_until back lets time pass.

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "support/catch.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::cell_rate_test {
namespace {

constexpr double gap = 1000;  ///< seconds per token, so that the time of the test itself hardly counts
constexpr double least_share = 0.98;

class Play {
 public:
  Play(unsigned seed, int burst) : random_(seed), burst_(burst), level_(burst), allowed_(burst) {
    insert_accounts(*connection_, 2000);
    set_rate(*connection_, "mailroom", gap, burst);
    for (auto& consumer : consumers_)
      consumer.session = attach(database_);
  }

  /// A claim of a random consumer, and then some time.
  void step() {
    auto& consumer = consumers_[static_cast<std::size_t>(draw(0, 2))];
    if (draw(1, 15) == 1) leave(consumer);
    const auto reply = claim(consumer, draw(1, burst_ + 3), draw(0, 1) == 0);
    const auto kind = draw(1, 20);
    if (kind == 1) return pass(gap * burst_ * draw(1, 3));
    if (kind < 8) return pass(gap * draw(0, 1500) / 1000);
    wait(std::chrono::duration<double>(reply.wait.value()).count());
  }

  /// Takes what is left.
  void finish() {
    while (claim(consumers_[0], burst_, true).lease) {
    }
  }

  /// Tokens beyond the rate and the burst, in the worst window.
  double excess() const { return excess_; }
  /// The part of the allowed tokens that was taken.
  double share() const { return taken_ / allowed_; }
  int taken() const { return taken_; }

 private:
  struct Consumer {
    std::unique_ptr<claim::PgQueueSession> session;
    std::optional<claim::Receipt> receipt{};
  };

  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  void play(double seconds) {
    connection_->run("UPDATE mailroom_budgets SET taken_until = taken_until - $1 * interval '1 s'", seconds);
    played_ += seconds;
  }

  /// What a full bucket does not hold is not allowed later.
  void pass(double seconds) {
    play(seconds);
    const auto more = std::min(seconds / gap, burst_ - level_);
    level_ += more;
    allowed_ += more;
  }

  /// As long as a claim has asked for. It must not ask for longer than until the bucket is full.
  void wait(double seconds) {
    play(seconds);
    allowed_ += seconds / gap;
    level_ = std::min(level_ + seconds / gap, double(burst_));
  }

  /// The session ends before it has acknowledged its batch: another takes it over.
  void leave(Consumer& consumer) {
    consumer.receipt.reset();
    consumer.session = attach(database_);
  }

  claim::ClaimReply claim(Consumer& consumer, int limit, bool partial) {
    auto reply = consumer.session->claim({.limit = limit, .partial = partial, .receipt = consumer.receipt});
    consumer.receipt.reset();
    if (reply.lease) {
      consumer.receipt = claim::Receipt{*reply.lease, fetch_due(*consumer.session, *reply.lease).counts};
      record(reply);
    }
    return reply;
  }

  /// Every window ends with a claim and begins with one, and includes both.
  void record(const claim::ClaimReply& reply) {
    const auto at =
        played_ +
        connection_
            ->run("SELECT extract(epoch FROM claimed_at)::float8 FROM mailroom_batches WHERE id = $1",
                  reply.lease->batch)[0][0]
            .as<double>();
    lowest_ = std::min(lowest_, taken_ - at / gap);
    taken_ += reply.size;
    level_ -= reply.size;
    excess_ = std::max(excess_, taken_ - at / gap - lowest_ - burst_);
  }

  std::mt19937 random_;
  int burst_;
  double level_;    ///< how many tokens may be taken
  double allowed_;  ///< since the start
  TestDatabase database_;
  std::unique_ptr<db::Connection> connection_ = database_.connect();
  std::array<Consumer, 3> consumers_{};
  double played_ = 0;
  double lowest_ = std::numeric_limits<double>::infinity();
  double excess_ = -std::numeric_limits<double>::infinity();
  int taken_ = 0;
};

}  // namespace

TEST_CASE("random claims take no more than the rate allows in any window, and nearly all of it") {
  for (const auto& [seed, burst] : {std::pair{1U, 1}, {2U, 4}, {3U, 10}, {4U, 25}}) {
    CAPTURE(seed, burst);
    Play play(seed, burst);
    for (int i = 0; i < 300; ++i)
      play.step();
    play.finish();
    CAPTURE(play.taken(), play.share());
    CHECK(play.excess() < 1e-6);
    CHECK(play.share() >= least_share);
    CHECK(play.taken() > 200);
    CHECK(play.taken() < 2000);
  }
}

TEST_CASE("a batch that is abandoned in the middle of a claim is not taken over beyond the rate") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 30);
  auto victim = attach(database);
  REQUIRE(victim->claim({.limit = 10}).lease);
  set_rate(*connection, "mailroom", gap, 10);
  connection->run("UPDATE mailroom_budgets SET taken_until = clock_timestamp() + 7 * $1 * interval '1 s'",
                  gap);
  // Its session ends after the claim has looked for abandoned batches for the first time.
  connection->run("ALTER FUNCTION mailroom_find_abandoned RENAME TO original_find_abandoned");
  connection->run(R"(
CREATE FUNCTION mailroom_find_abandoned(p_queue text, p_open_from bigint, p_take_over boolean, p_ack bigint,
    p_ack_attempt integer, p_held bigint DEFAULT NULL, OUT abandoned bigint, OUT exhausted bigint, OUT oldest_open bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_pid integer := (SELECT collector FROM mailroom_batches ORDER BY id LIMIT 1);
BEGIN
    SELECT f.* INTO abandoned, exhausted, oldest_open
    FROM original_find_abandoned(p_queue, p_open_from, p_take_over, p_ack, p_ack_attempt, p_held) f;
    PERFORM pg_terminate_backend(v_pid, 10000);
END
$$)");
  const auto session = attach(database);
  const auto reply = session->claim({.limit = 10, .partial = true});
  REQUIRE(reply.lease);
  CHECK(reply.size == 3);
  const auto next =
      session->claim({.limit = 10,
                      .partial = true,
                      .receipt = claim::Receipt{*reply.lease, fetch_due(*session, *reply.lease).counts}});
  CHECK_FALSE(next.lease);
  CHECK(*next.wait > Milliseconds(9'900'000));
}

}  // namespace mailroom::test::cell_rate_test
