#include "smtp/courier.hpp"

#include <exception>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

#include "base/blocked_signals.hpp"
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
      auto& relays = relays_.emplace_back();
      for (const auto& url : options.relays)
        relays.push_back(std::make_unique<Relay>(url, options.relay));
    }
  } catch (...) {
    close(ready_);
    throw;
  }
  const BlockedSignals blocked;
  for (auto& relays : relays_)
    threads_.emplace_back([this, &relays] { work(relays); });
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

void Courier::submit(std::int64_t id, Mail mail, std::int64_t batch) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({id, std::move(mail), batch});
    ++unfinished_[batch];
  }
  submitted_.notify_one();
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
  for (; !waiting_.empty(); waiting_.pop_front())
    keep(waiting_.front(), given_up("stopped before the mail was sent"));
  if (in_flight_ == 0) return;
  each_relay([](Relay& relay) { relay.interrupt(); });
  finished_.wait(lock, [this] { return in_flight_ == 0; });
  each_relay([](Relay& relay) { relay.resume(); });
}

template <typename Visit>
void Courier::each_relay(Visit visit) {
  for (auto& relays : relays_) {
    for (auto& relay : relays)
      visit(*relay);
  }
}

void Courier::keep(const Submitted& mail, Delivery delivery) {
  delivered_.push_back({mail.id, std::move(delivery), std::chrono::steady_clock::now()});
  const auto batch = unfinished_.find(mail.batch);
  if (--batch->second > 0) return;
  unfinished_.erase(batch);
  eventfd_write(ready_, 1);
  if (unfinished_.empty()) finished_.notify_all();
}

void Courier::work(Relays& relays) {
  std::unique_lock lock(mutex_);
  for (;;) {
    submitted_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (ended_) return;
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    ++in_flight_;
    lock.unlock();
    auto delivery = deliver(relays, next.mail);
    lock.lock();
    --in_flight_;
    keep(next, std::move(delivery));
  }
}

Delivery Courier::deliver(Relays& relays, const Mail& mail) {
  std::optional<Delivery> last;
  for (auto next = route_.admit(0); next; next = route_.admit(next->relay + 1)) {
    const auto began = std::chrono::steady_clock::now();
    last = attempt(*relays[next->relay], mail);
    last->took = std::chrono::steady_clock::now() - began;
    last->ended = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
    route_.note(*next, *last);
    if (last->outcome != MailOutcome::unavailable && !last->about_relay) return *std::move(last);
  }
  if (!last) return route_.blocked();
  if (!last->retry_after) last->retry_after = route_.time_to_admission();
  return *std::move(last);
}

}  // namespace mailroom
