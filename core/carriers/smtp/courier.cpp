// The worker threads: each takes the first mail that waits, delivers it and keeps its outcome.

#include "carriers/smtp/courier.hpp"

#include <algorithm>
#include <exception>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

#include "base/blocked_signals.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"

namespace mailroom {
namespace {

Delivery given_up(std::string why) {
  Delivery delivery;
  delivery.outcome = MailOutcome::deferred;
  delivery.reply = std::move(why);
  return delivery;
}

Delivery attempt(Relay& relay, const Mail& mail) try {
  return relay.deliver(mail);
} catch (const std::exception& error) {
  // Out of memory, perhaps after the mail was sent.
  Delivery delivery;
  delivery.outcome = MailOutcome::unknown;
  delivery.counts = true;
  delivery.reply = printable(error.what());
  delivery.relay = relay.url().address();
  return delivery;
}

}  // namespace

Courier::Courier(const CourierOptions& options)
    : route_(options.relays, options.relay.timeout, options.seed),
      ready_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (ready_ < 0) throw Error(ExitCode::failed, "cannot make an eventfd");
  try {
    for (int i = 0; i < options.connections; ++i) {
      auto& worker = workers_.emplace_back();
      worker.seats.resize(options.relays.size());
      for (const auto& url : options.relays)
        worker.relays.push_back(std::make_unique<Relay>(url, options.relay));
    }
    for (std::size_t i = 0; i < options.relays.size(); ++i)
      limits_.push_back({.pace = Pace(options.seed + i), .at_once = AtOnce(options.connections)});
  } catch (...) {
    close(ready_);
    throw;
  }
  const BlockedSignals blocked;
  for (auto& worker : workers_)
    threads_.emplace_back([this, &worker] { work(worker); });
}

Courier::~Courier() {
  cancel();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  submitted_.notify_all();
  for (auto& thread : threads_)
    thread.join();
  close(ready_);
}

void Courier::submit(std::int64_t id, Mail mail, std::int64_t batch, TimePoint expires_at) {
  bool limited = false;
  {
    const std::lock_guard lock(mutex_);
    const auto refusals = earlier_refusals(mail.to);
    // Those that were refused come last: if it was for themselves, the others show that soon.
    const auto last = std::ranges::find_if(
        waiting_, [&](const Submitted& other) { return refusals.are_none() && !other.refusals.are_none(); });
    waiting_.insert(last, {.id = id,
                           .mail = std::move(mail),
                           .batch = batch,
                           .until = std::min(expires_at, steady_now() + Pace::longest_wait),
                           .refusals = refusals});
    ++unfinished_[batch];
    limited = is_limited();
  }
  // Not every worker may take it then.
  limited ? submitted_.notify_all() : submitted_.notify_one();
}

std::vector<DeliveredMail> Courier::take() {
  const std::lock_guard lock(mutex_);
  eventfd_t count = 0;
  eventfd_read(ready_, &count);
  return std::exchange(delivered_, {});
}

std::size_t Courier::unfinished() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() + in_flight_;
}

bool Courier::wait(TimePoint until) {
  std::unique_lock lock(mutex_);
  return finished_.wait_until(lock, until, [this] { return unfinished_.empty(); });
}

void Courier::cancel() {
  std::unique_lock lock(mutex_);
  cancelling_ = true;
  for (; !waiting_.empty(); waiting_.pop_front())
    keep(waiting_.front(), given_up("stopped before the mail was sent"));
  if (in_flight_ > 0) {
    each_relay([](Relay& relay) { relay.interrupt(); });
    finished_.wait(lock, [this] { return in_flight_ == 0; });
    each_relay([](Relay& relay) { relay.resume(); });
  }
  cancelling_ = false;
}

template <typename Visit>
void Courier::each_relay(Visit visit) {
  for (auto& worker : workers_) {
    for (auto& relay : worker.relays)
      visit(*relay);
  }
}

void Courier::keep(const Submitted& mail, Delivery delivery) {
  delivered_.push_back({mail.id, std::move(delivery), steady_now()});
  const auto batch = unfinished_.find(mail.batch);
  if (--batch->second > 0) return;
  unfinished_.erase(batch);
  eventfd_write(ready_, 1);
  if (unfinished_.empty()) finished_.notify_all();
}

void Courier::work(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    const auto now = steady_now();
    give_back_overdue(now);
    const auto turn = next_start(worker, now);
    if (turn == TimePoint::max()) {
      submitted_.wait(lock);
    } else if (turn > now) {
      submitted_.wait_until(lock, turn);
    } else if (waiting_.empty()) {
      rest(worker, lock);
    } else {
      start(worker, lock, now);
    }
  }
}

void Courier::start(Worker& worker, std::unique_lock<std::mutex>& lock, TimePoint now) {
  auto next = std::move(waiting_.front());
  waiting_.pop_front();
  ++in_flight_;
  const auto relay = route_.likely();
  limits_[relay].pace.left(now);
  lock.unlock();
  auto delivery = deliver(worker, next);
  lock.lock();
  --in_flight_;
  worker.idle_since = steady_now();
  if (!waits_again(next, delivery, worker.idle_since)) keep(next, std::move(delivery));
  if (cancelling_ && in_flight_ == 0) finished_.notify_all();
  auto& limits = limits_[relay];
  if (limits.seats > limits.at_once.limit(worker.idle_since)) rest(worker, lock);
}

void Courier::rest(Worker& worker, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  for (const auto& relay : worker.relays)
    relay->rest();
  lock.lock();
  for (std::size_t i = 0; i < worker.seats.size(); ++i)
    leave_seat(worker, i);
  wake_workers();
}

void Courier::give_back_overdue(TimePoint now) {
  if (waiting_.empty() || !is_limited()) return;
  const auto& limits = limits_[route_.likely()];
  const auto gap = limits.pace.gap();
  // Another sender may have the connections.
  const bool is_closed = limits.at_once.opens_at() > now;
  std::chrono::nanoseconds turn{};
  std::erase_if(waiting_, [&](const Submitted& mail) {
    if (mail.until > now && !is_closed) return false;
    auto delivery = given_up("the mail waited for its turn, as the relay limits the rate");
    delivery.waits_for_turn = true;
    delivery.retry_after = std::chrono::floor<std::chrono::seconds>(
        std::min<std::chrono::nanoseconds>(turn, Pace::longest_wait));
    turn += gap;
    remember_refusals(mail);
    keep(mail, std::move(delivery));
    return true;
  });
}

Delivery Courier::deliver(Worker& worker, const Submitted& submitted) {
  std::optional<Delivery> last;
  for (auto next = route_.admit(0); next; next = route_.admit(next->relay + 1)) {
    const auto began = steady_now();
    {
      const std::lock_guard lock(mutex_);
      take_seat(worker, next->relay);
      ++limits_[next->relay].in_flight;
    }
    last = attempt(*worker.relays[next->relay], submitted.mail);
    last->took = steady_now() - began;
    last->ended = wall_now();
    route_.weigh(*next, *last);
    if (learn(worker, next->relay, submitted, *last, began)) {
      route_.note(*next, given_up(""));
      last->outcome = MailOutcome::deferred;
      last->waits_for_turn = true;
      return *std::move(last);
    }
    route_.note(*next, *last);
    if (last->outcome != MailOutcome::unavailable && !last->about_relay) return *std::move(last);
  }
  if (!last) return route_.blocked();
  if (!last->retry_after) last->retry_after = time_to_admission();
  return *std::move(last);
}

}  // namespace mailroom
