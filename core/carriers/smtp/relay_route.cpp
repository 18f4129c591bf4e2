// Lets one thread probe an unavailable relay, and the others wait for what the probe finds.

#include "carriers/smtp/relay_route.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"

namespace mailroom {

RelayRoute::RelayRoute(std::vector<RelayUrl> relays, Milliseconds probe_time, std::uint64_t seed)
    : relays_(std::move(relays)),
      probe_time_(probe_time),
      breakers_(relays_.size()),
      probed_(relays_.size()),
      refusals_(relays_.size()),
      random_(seed) {}

std::optional<Admission> RelayRoute::admit_now(std::size_t first) {
  const auto now = wall_now();
  for (auto i = first; i < relays_.size(); ++i) {
    if (probed_[i]) continue;
    auto after = let_through(breakers_[i], now, probe_time_);
    if (!after) continue;
    breakers_[i] = *std::move(after);
    probed_[i] = breakers_[i].is_open();
    return Admission{.relay = i, .is_probe = probed_[i], .began = now};
  }
  return std::nullopt;
}

std::optional<Admission> RelayRoute::admit(std::size_t first) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (first >= relays_.size()) return std::nullopt;
    auto admission = admit_now(first);
    const auto from = probed_.begin() + static_cast<std::ptrdiff_t>(first);
    if (admission || std::find(from, probed_.end(), true) == probed_.end()) return admission;
    probe_ended_.wait(lock);
  }
}

std::size_t RelayRoute::likely() const {
  const std::lock_guard lock(mutex_);
  const auto closed = std::ranges::find(breakers_, 0, &Breaker::failures);
  return closed == breakers_.end() ? 0 : static_cast<std::size_t>(closed - breakers_.begin());
}

void RelayRoute::weigh(const Admission& admission, Delivery& delivery) {
  const std::lock_guard lock(mutex_);
  auto& memory = refusals_.at(admission.relay);
  const auto now = wall_now();
  if (delivery.outcome == MailOutcome::accepted) memory.accepted(admission.began, now);
  if (delivery.refusal.empty()) return;
  bool is_about_mail = false;
  if (delivery.waits_for_turn) {
    is_about_mail = memory.limited(delivery.refusal, now);
  } else {
    const bool is_rejected = delivery.outcome == MailOutcome::rejected;
    const auto about =
        memory.refused(delivery.refusal, is_rejected ? RefusalSubject::unclear : RefusalSubject::everyone,
                       admission.is_probe, now);
    is_about_mail = about == RefusalSubject::recipient && !is_rejected;
    delivery.about_relay = about == RefusalSubject::everyone && is_rejected;
  }
  if (is_about_mail) {
    delivery.throttled = delivery.crowded = delivery.waits_for_turn = false;
    delivery.counts = true;
  }
  if (is_about_mail || delivery.about_relay) delivery.outcome = MailOutcome::deferred;
}

void RelayRoute::meets_some(std::size_t relay, const std::string& refusal) {
  const std::lock_guard lock(mutex_);
  refusals_.at(relay).meets_some(refusal, wall_now());
}

void RelayRoute::note(const Admission& admission, const Delivery& delivery) {
  const std::lock_guard lock(mutex_);
  if (admission.is_probe) probed_.at(admission.relay) = false;
  const double chance = std::uniform_real_distribution<double>(0, 1)(random_);
  auto& breaker = breakers_.at(admission.relay);
  breaker = after_delivery(breaker, delivery, admission.began, wall_now(), chance);
  if (admission.is_probe) probe_ended_.notify_all();
}

Delivery RelayRoute::blocked() const {
  const auto wait = time_to_admission();
  const std::lock_guard lock(mutex_);
  return {.outcome = MailOutcome::unavailable,
          .counts = false,
          .code = 0,
          .reply = breakers_.front().why,
          .relay = relays_.front().address(),
          .retry_after = wait.value_or(std::chrono::seconds(1)),
          .throttled = false};
}

std::optional<std::chrono::seconds> RelayRoute::time_to_admission() const {
  const std::lock_guard lock(mutex_);
  const auto now = wall_now();
  std::optional<std::chrono::seconds> least;
  for (const auto& breaker : breakers_) {
    if (let_through(breaker, now, probe_time_)) return std::nullopt;
    const auto wait = time_to_probe(breaker, now);
    least = std::min(least.value_or(*wait), *wait);
  }
  return least;
}

std::vector<Breaker> RelayRoute::breakers() const {
  const std::lock_guard lock(mutex_);
  return breakers_;
}

void RelayRoute::set_breakers(const std::vector<Breaker>& seen, const std::vector<Breaker>& breakers) {
  const std::lock_guard lock(mutex_);
  if (seen.size() != relays_.size() || breakers.size() != relays_.size())
    throw std::invalid_argument("one breaker for each relay is needed");
  for (std::size_t i = 0; i < relays_.size(); ++i) {
    if (breakers_[i] == seen[i]) breakers_[i] = breakers[i];
  }
}

}  // namespace mailroom
