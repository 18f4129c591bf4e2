// How a courier keeps to the limits of its relays, and what it learns of them.

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "smtp/courier.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds longest_idle{
    60'000};  ///< of a connection: some networks forget it a few minutes later
constexpr std::chrono::seconds pause_after_many{3};  ///< refusals of a mail
constexpr Milliseconds glance{1000};                 ///< while mails wait for their turn

}  // namespace

TimePoint Courier::next_start(const Worker& worker, TimePoint now) {
  if (waiting_.empty()) {
    const bool is_connected = std::find(worker.seats.begin(), worker.seats.end(), true) != worker.seats.end();
    return is_connected ? worker.idle_since + longest_idle : TimePoint::max();
  }
  const auto relay = route_.likely();
  auto& limits = limits_[relay];
  const bool has_seat = worker.seats[relay] || limits.seats < limits.at_once.limit(now);
  const auto turn = has_seat ? limits.pace.next() : limits.at_once.raise_at();
  return std::min(turn, now + glance);
}

void Courier::take_seat(Worker& worker, std::size_t relay) {
  limits_[relay].seats += worker.seats[relay] ? 0 : 1;
  worker.seats[relay] = true;
}

void Courier::leave_seat(Worker& worker, std::size_t relay) {
  limits_[relay].seats -= worker.seats[relay] ? 1 : 0;
  worker.seats[relay] = false;
}

bool Courier::is_limited() const {
  return std::ranges::any_of(
      limits_, [](const Limits& limits) { return limits.pace.limit() || limits.at_once.is_lowered(); });
}

void Courier::wake_workers() {
  if (!waiting_.empty()) submitted_.notify_all();
}

void Courier::learn_rate(Limits& limits, const Submitted& mail, const Delivery& delivery, TimePoint began,
                         TimePoint now) {
  if (delivery.outcome == MailOutcome::accepted) limits.pace.took(began, now);
  const bool is_crowded = delivery.crowded && !delivery.before_mail;
  if (is_crowded && limits.in_flight > 0) {
    limits.at_once.refused_mail(limits.in_flight, began, now);
  } else if (delivery.throttled || is_crowded) {
    // One that is refused again and again may be so for its recipient, and must not slow down the others.
    const bool is_another = std::exchange(limits.refused, mail.id) != mail.id;
    if (is_another && mail.refusals.is_news(limits.pace)) limits.pace.refused(began, now);
  }
}

bool Courier::learn(Worker& worker, std::size_t relay, const Submitted& mail, const Delivery& delivery,
                    TimePoint began) {
  const std::lock_guard lock(mutex_);
  const auto now = steady_now();
  auto& limits = limits_[relay];
  --limits.in_flight;
  if (delivery.code != 0 && !delivery.before_mail) limits.last_answered = now;
  learn_rate(limits, mail, delivery, began, now);
  if (delivery.outcome != MailOutcome::unavailable) return false;
  leave_seat(worker, relay);
  // What has no answer may be a network that is down, and with it the other connections.
  const bool others_work = limits.seats > 0 && (delivery.code != 0 || limits.last_answered > began);
  const bool is_one_too_many = delivery.before_mail && others_work;
  if (is_one_too_many) {
    limits.at_once.refused_connection(limits.seats, began, now);
  } else {
    limits.at_once.forget();
  }
  wake_workers();
  return is_one_too_many;
}

bool Courier::waits_again(Submitted& mail, Delivery& delivery, TimePoint now) {
  if (!delivery.waits_for_turn) return false;
  if (!delivery.before_mail) mail.refusals.add(now);
  if (mail.refusals.are_many()) {
    delivery.counts = mail.refusals.are_about_mail(limits_[route_.likely()].pace);
    delivery.waits_for_turn = !delivery.counts;
    if (!delivery.retry_after) delivery.retry_after = pause_after_many;
    return false;
  }
  if (cancelling_ || ended_ || delivery.retry_after || now >= mail.until) return false;
  delivered_.push_back({.id = mail.id, .delivery = delivery, .at = now, .is_final = false});
  waiting_.push_back(std::move(mail));
  submitted_.notify_all();
  return true;
}

int Courier::room(int most) const {
  const std::lock_guard lock(mutex_);
  return limits_[route_.likely()].pace.room(most);
}

TimePoint Courier::next_turn() const {
  const std::lock_guard lock(mutex_);
  const auto& pace = limits_[route_.likely()].pace;
  return pace.next() + pace.gap() * static_cast<int>(waiting_.size());
}

std::optional<double> Courier::rate() const {
  const std::lock_guard lock(mutex_);
  return limits_[route_.likely()].pace.limit();
}

}  // namespace mailroom
