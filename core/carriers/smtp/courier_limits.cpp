// How a courier keeps to the limits of its relays, and what it learns of them.

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "carriers/smtp/courier.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds longest_idle{
    60'000};  ///< of a connection: some networks forget it a few minutes later
constexpr std::chrono::seconds pause_after_many{3};  ///< refusals of a mail
constexpr Milliseconds glance{1000};                 ///< while mails wait for their turn

}  // namespace

TimePoint Courier::next_start(const Worker& worker, TimePoint now) {
  if (waiting_.empty()) {
    const bool is_connected = std::ranges::any_of(worker.seats, &Seat::is_taken);
    return is_connected ? worker.idle_since + longest_idle : TimePoint::max();
  }
  const auto relay = route_.likely();
  auto& limits = limits_[relay];
  const bool has_seat = worker.seats[relay].is_taken || limits.seats < limits.at_once.limit(now);
  const auto turn = has_seat ? limits.pace.next() : limits.at_once.raise_at();
  return std::min(turn, now + glance);
}

void Courier::take_seat(Worker& worker, std::size_t relay) {
  limits_[relay].seats += worker.seats[relay].is_taken ? 0 : 1;
  worker.seats[relay].is_taken = true;
}

void Courier::leave_seat(Worker& worker, std::size_t relay) {
  limits_[relay].seats -= worker.seats[relay].is_taken ? 1 : 0;
  worker.seats[relay] = {};
}

bool Courier::others_work(const Worker& worker, std::size_t relay, const Delivery& delivery) const {
  if (limits_[relay].seats == 0) return false;
  if (delivery.code != 0) return true;
  // What has no answer may be a network that is down. Then the connections that were of use show it soon.
  return std::ranges::any_of(
      workers_, [&](const Worker& other) { return &other != &worker && other.seats[relay].works; });
}

bool Courier::is_limited() const {
  return std::ranges::any_of(limits_, [now = steady_now()](const Limits& limits) {
    return limits.pace.limit() || limits.at_once.is_lowered() || limits.at_once.opens_at() > now;
  });
}

void Courier::wake_workers() {
  if (!waiting_.empty()) submitted_.notify_all();
}

void Courier::learn_rate(Limits& limits, const Submitted& mail, const Delivery& delivery, TimePoint began,
                         TimePoint now) {
  if (delivery.outcome == MailOutcome::accepted) limits.pace.took(began, now);
  const bool is_crowded = delivery.crowded && !delivery.before_mail;
  // One that is refused again and again may be so for its recipient, and must not slow down the others.
  if (!(is_crowded || delivery.throttled) || !mail.refusals.is_news(limits.pace)) return;
  const bool is_another = std::exchange(limits.refused, mail.id) != mail.id;
  if (is_crowded && limits.in_flight > 0) {
    limits.at_once.refused_mail(limits.in_flight, began, now);
  } else if (is_another) {
    limits.pace.refused(began, now);
  }
}

bool Courier::learn(Worker& worker, std::size_t relay, const Submitted& mail, Delivery& delivery,
                    TimePoint began) {
  const std::lock_guard lock(mutex_);
  const auto now = steady_now();
  auto& limits = limits_[relay];
  --limits.in_flight;
  if (delivery.code != 0 && !delivery.before_mail && delivery.outcome != MailOutcome::unavailable) {
    limits.last_answered = now;
    limits.at_once.answered();
    worker.seats[relay].works = true;
  }
  learn_rate(limits, mail, delivery, began, now);
  if (delivery.waits_for_turn && limits.pace.is_shut(now)) {
    delivery.waits_for_turn = false;
    delivery.outcome = MailOutcome::unavailable;
  }
  if (delivery.outcome != MailOutcome::unavailable) return false;
  leave_seat(worker, relay);
  // Some relays say so only at MAIL.
  const bool is_connection = delivery.before_mail || delivery.code == 421;
  bool is_one_too_many = is_connection && others_work(worker, relay, delivery);
  if (is_one_too_many) {
    limits.at_once.refused_connection(limits.seats, began, now);
  } else if (is_connection && delivery.crowded) {
    is_one_too_many = limits.at_once.refused_all(now);
  } else {
    limits.at_once.forget();
  }
  wake_workers();
  return is_one_too_many;
}

Refusals Courier::earlier_refusals(const std::string& recipient) {
  const auto known = refused_.find(recipient);
  if (known == refused_.end()) return {};
  auto refusals = known->second;
  refused_.erase(known);
  refusals.begin_again();
  return refusals;
}

void Courier::remember_refusals(const Submitted& mail) {
  constexpr std::size_t most = 256;
  if (refused_.size() >= most) refused_.clear();
  if (!mail.refusals.are_none()) refused_[mail.mail.to] = mail.refusals;
}

bool Courier::end_of_refusals(const Submitted& mail, const Delivery& delivery) {
  if (!mail.refusals.are_about_mail()) {
    remember_refusals(mail);
    return false;
  }
  // No limit was meant, so what was learnt from such answers is wrong.
  const auto relay = route_.likely();
  if (!delivery.refusal.empty()) route_.meets_some(relay, delivery.refusal);
  limits_[relay].pace.forget();
  limits_[relay].at_once.forget();
  wake_workers();
  return true;
}

bool Courier::waits_again(Submitted& mail, Delivery& delivery, TimePoint now) {
  if (!delivery.waits_for_turn) return false;
  if (!delivery.before_mail) mail.refusals.add(limits_[route_.likely()].pace, now);
  const bool is_over = cancelling_ || ended_ || delivery.retry_after || now >= mail.until;
  if (is_over || mail.refusals.are_many() || mail.refusals.are_about_mail()) {
    delivery.counts = end_of_refusals(mail, delivery);
    delivery.waits_for_turn = !delivery.counts;
    if (!is_over && !delivery.counts) delivery.retry_after = pause_after_many;
    return false;
  }
  delivered_.push_back({.id = mail.id, .delivery = delivery, .at = now, .is_final = false});
  waiting_.push_back(std::move(mail));
  submitted_.notify_all();
  return true;
}

std::optional<std::chrono::seconds> Courier::time_to_admission() const {
  const auto wait = route_.time_to_admission();
  const std::lock_guard lock(mutex_);
  const auto closed = limits_[route_.likely()].at_once.opens_at() - steady_now();
  if (closed <= std::chrono::nanoseconds(0)) return wait;
  return std::max(wait.value_or(std::chrono::seconds(0)), std::chrono::ceil<std::chrono::seconds>(closed));
}

void Courier::set_breakers(const std::vector<Breaker>& seen, std::vector<Breaker> breakers) {
  constexpr std::chrono::seconds recent{5};
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < std::min(limits_.size(), breakers.size()); ++i) {
      if (limits_[i].seats > 0 && steady_now() - limits_[i].last_answered < recent && !seen[i].is_open())
        breakers[i] = seen[i];
    }
  }
  route_.set_breakers(seen, breakers);
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
