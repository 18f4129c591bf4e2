// When the thread of a dispatcher has to know of an answer, and when nobody needs to wake for it.

#include "delivery/dispatcher.hpp"

#include <limits>

#include "support/catch.hpp"

namespace mailroom::test::dispatcher_test {

using namespace std::chrono_literals;

namespace {

constexpr auto each = std::numeric_limits<std::size_t>::max();

/// Answers when the test says so, and keeps what the dispatcher asks for. The thread of a dispatcher that has
/// messages calls it too: each call of the test holds the lock.
class HeldCarrier final : public delivery::Carrier {
 public:
  std::vector<std::string> endpoints() const override { return {"held:1"}; }
  void submit(delivery::Message message) override {
    const std::lock_guard lock(mutex_);
    held_.push_back(message.id);
  }
  int fd() const override { return ready_.fd(); }
  std::vector<delivery::Answer> take() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(answers_, {});
  }
  void call_below(std::size_t unanswered) override {
    const std::lock_guard lock(mutex_);
    call_below_ = unanswered;
  }
  std::size_t unfinished() const override {
    const std::lock_guard lock(mutex_);
    return held_.size() + answers_.size();
  }
  void cancel() override { answer(held(), delivery::Verdict::unavailable); }

  std::size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  std::size_t call_level() const {
    const std::lock_guard lock(mutex_);
    return call_below_;
  }
  /// Of the first `count` messages.
  void answer(std::size_t count, delivery::Verdict verdict = delivery::Verdict::accepted,
              bool crowded = false) {
    const std::lock_guard lock(mutex_);
    for (; count > 0; --count) {
      answers_.push_back({.id = held_.front(), .verdict = verdict, .sink = "held:1", .code = 250});
      answers_.back().crowded = answers_.back().waits_for_turn = crowded;
      held_.erase(held_.begin());
    }
  }

 private:
  mutable std::mutex mutex_;
  EventFd ready_;
  std::vector<std::int64_t> held_;
  std::vector<delivery::Answer> answers_;
  std::size_t call_below_ = each;
};

struct Rig {
  HeldCarrier* carrier = new HeldCarrier;
  delivery::Dispatcher dispatcher;
  std::int64_t next = 1;

  explicit Rig(int in_flight)
      : dispatcher(std::unique_ptr<delivery::Carrier>(carrier), {.in_flight = in_flight}) {}
  ~Rig() { carrier->answer(carrier->held()); }

  void submit(std::int64_t batch, int count) {
    for (; count > 0; --count)
      dispatcher.submit({.id = next++, .batch = batch}, SpooledText("text"));
  }
  /// unfinished() takes the answers.
  std::size_t level() {
    dispatcher.unfinished();
    return carrier->call_level();
  }
};

}  // namespace

TEST_CASE("while a batch is filled, nobody is called for what is accepted of it") {
  Rig rig(10);
  rig.dispatcher.fill(7);
  rig.submit(7, 4);
  CHECK(rig.level() == 0);
  rig.carrier->answer(4);
  CHECK(rig.level() == 0);
  CHECK_FALSE(rig.dispatcher.has_finished_batch());
  rig.submit(7, 4);
  rig.dispatcher.filled();
  CHECK(rig.level() == 1);
  rig.carrier->answer(4);
  CHECK(rig.dispatcher.unfinished() == 0);
  CHECK(rig.dispatcher.has_finished_batch());
  CHECK(rig.dispatcher.take().size() == 8);
}

TEST_CASE("the thread is called as soon as one of two batches may be done") {
  Rig rig(20);
  rig.submit(7, 6);
  rig.dispatcher.fill(8);
  rig.submit(8, 3);
  // When three are left, they may all be of the second.
  CHECK(rig.level() == 4);
  rig.dispatcher.filled();
  CHECK(rig.level() == 7);
  rig.carrier->answer(5);
  CHECK(rig.level() == 4);
  rig.carrier->answer(1);
  CHECK(rig.level() == 1);
  CHECK(rig.dispatcher.has_finished_batch());
}

TEST_CASE("while messages wait, the thread is called for each that makes room") {
  Rig rig(3);
  rig.dispatcher.fill(7);
  rig.submit(7, 3);
  CHECK(rig.level() == 0);
  rig.submit(7, 2);
  CHECK(rig.level() == 4);
  rig.carrier->answer(2);
  CHECK(rig.level() == 0);
  CHECK(rig.carrier->held() == 3);
}

TEST_CASE("once an endpoint refuses too many messages, each answer decides what leaves next") {
  Rig rig(4);
  rig.dispatcher.fill(7);
  rig.submit(7, 4);
  rig.carrier->answer(1);
  rig.carrier->answer(1, delivery::Verdict::deferred, true);
  CHECK(rig.level() == each);
}

}  // namespace mailroom::test::dispatcher_test
