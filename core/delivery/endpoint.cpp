// Weighs a refusal by what other messages get, and learns rate and connections from those that were too many.

#include "delivery/endpoint.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace mailroom::delivery {
namespace {

/// Makes `answer` one that other messages do not get: an attempt at its message.
void be_about_some(Answer& answer) {
  answer.throttled = answer.crowded = answer.waits_for_turn = answer.is_excused = false;
  answer.is_about_some = true;
  answer.verdict = Verdict::deferred;
  for (auto& token : answer.tokens) {
    if (token.verdict != Verdict::unavailable) continue;
    token.verdict = Verdict::deferred;
    token.is_about_some = true;
  }
}

}  // namespace

Endpoint::Endpoint(std::string name, int in_flight, std::optional<config::Rate> rate, std::uint64_t seed)
    : name_(std::move(name)), pace_(seed, rate), at_once_(in_flight), most_(in_flight) {}

Endpoint::Leave Endpoint::leave(WallTime now) const {
  if (is_probed_) return Leave::later;
  return let_through(breaker_, now, Milliseconds(0)) ? Leave::given : Leave::none;
}

bool Endpoint::is_limited(TimePoint now) const {
  return pace_.limit() || at_once_.is_lowered() || at_once_.opens_at() > now;
}

int Endpoint::most_in_flight(TimePoint now, int ahead) {
  return is_limited(now) || breaker_.is_open() ? at_once_.limit(now) : most_ + ahead;
}

bool Endpoint::has_room(TimePoint now, int ahead) {
  return in_flight_ < most_in_flight(now, ahead) && pace_.next() <= now;
}

TimePoint Endpoint::next_room(TimePoint now, int ahead) {
  if (in_flight_ < most_in_flight(now, ahead)) return pace_.next();
  return is_limited(now) ? at_once_.raise_at() : TimePoint::max();
}

Departure Endpoint::left(TimePoint now, WallTime wall, Milliseconds probe_time) {
  ++in_flight_;
  pace_.left(now);
  const auto due = breaker_.next_probe;
  is_probed_ = breaker_.is_open() && !probes_at_once_;
  if (is_probed_) breaker_ = let_through(breaker_, wall, probe_time).value_or(breaker_);
  return {.left = now, .began = wall, .is_probe = breaker_.is_open(), .next_probe = due};
}

void Endpoint::came_back(const Departure& departure) {
  --in_flight_;
  if (departure.is_probe) is_probed_ = false;
}

void Endpoint::came_back_untried(const Departure& departure) {
  came_back(departure);
  if (departure.is_probe && breaker_.is_open()) breaker_.next_probe = departure.next_probe;
}

void Endpoint::weigh(Answer& answer, const RefusedBefore& before, const Departure& departure, WallTime wall) {
  const auto sender = "from " + before.sender;
  if (answer.verdict == Verdict::accepted) refusals_.accepted(sender, departure.began, wall);
  if (answer.refusal.empty()) return;
  // Of several mails in a message some were taken.
  if (answer.verdict == Verdict::accepted) return refusals_.meets_some(answer.refusal, wall);
  if (answer.waits_for_turn) {
    if (refusals_.limited(answer.refusal, wall)) be_about_some(answer);
    return;
  }
  const bool is_rejected = answer.verdict == Verdict::rejected;
  // A message of several mails has none of its own.
  const bool is_of_sender = answer.varies_with == VariesWith::sender && !before.sender.empty();
  const auto about =
      refusals_.refused({.key = is_of_sender ? sender : answer.refusal,
                         .by_words = is_rejected ? RefusalSubject::unclear : RefusalSubject::everyone,
                         .is_of_sender = is_of_sender,
                         .was_refused = before.was_refused,
                         .is_probe = is_probed_},
                        wall);
  if (about == RefusalSubject::recipient && !is_rejected) be_about_some(answer);
  answer.about_everyone = about == RefusalSubject::everyone && is_rejected;
  if (answer.about_everyone) answer.verdict = Verdict::deferred;
}

void Endpoint::learn_rate(const Answer& answer, const Refusals& refusals, TimePoint left, TimePoint now) {
  if (answer.verdict == Verdict::accepted) pace_.took(left, now);
  const bool is_crowded = answer.crowded && !answer.before_message;
  // One that is refused again and again may be so for its recipient, and must not slow down the others.
  if (!(is_crowded || answer.throttled) || !refusals.is_news(pace_)) return;
  const bool is_another = std::exchange(refused_, answer.id) != answer.id;
  if (const int others = at_answers_ - 1; is_crowded && others > 0) {
    // Of those in flight, the carrier may have begun no more than these.
    at_once_.refused_mail(std::min(others, most_ - 1), left, now);
  } else if (is_another) {
    pace_.refused(left, now);
  }
}

bool Endpoint::is_one_too_many(const Answer& answer, TimePoint left, TimePoint now) {
  // Some relays say so only at MAIL.
  const bool is_connection = answer.before_message || answer.code == 421;
  // What has no answer may be a network that is down. Then the connections that were of use show it soon.
  const bool others_work = answer.other_connections > 0 && (answer.code != 0 || answer.others_work);
  if (is_connection && others_work) {
    at_once_.refused_connection(answer.other_connections, left, now);
    return true;
  }
  if (is_connection && answer.crowded) return at_once_.refused_all(now);
  at_once_.forget();
  return false;
}

void Endpoint::learn(Answer& answer, const RefusedBefore& before, const Departure& departure, TimePoint now,
                     WallTime wall, double chance) {
  came_back(departure);
  weigh(answer, before, departure, wall);
  if (answer.shows_life() && !answer.before_message) {
    last_answered_ = now;
    at_once_.answered();
  }
  learn_rate(answer, before.refusals, departure.left, now);
  if (answer.waits_for_turn && pace_.is_shut(now)) {
    answer.waits_for_turn = false;
    answer.verdict = Verdict::unavailable;
  }
  if (answer.verdict == Verdict::unavailable && is_one_too_many(answer, departure.left, now)) {
    answer.verdict = Verdict::deferred;
    answer.is_excused = answer.waits_for_turn = true;
    answer.before_message = true;
  }
  // What was in flight with the message that opened the breaker fails for the same reason.
  const bool is_repetition = breaker_.is_open() && !departure.is_probe && !answer.shows_life();
  if (is_repetition) return;
  breaker_ = after_answer(breaker_, answer, departure.began, wall, chance);
  probes_at_once_ = breaker_.is_open() && breaker_.next_probe <= breaker_.opened_at;
}

void Endpoint::meets_some(const std::string& refusal, WallTime wall) {
  if (!refusal.empty()) refusals_.meets_some(refusal, wall);
  pace_.forget();
  at_once_.forget();
}

std::optional<std::chrono::seconds> Endpoint::time_to_probe(WallTime wall) const {
  if (let_through(breaker_, wall, Milliseconds(0))) return std::nullopt;
  return mailroom::delivery::time_to_probe(breaker_, wall);
}

bool Endpoint::is_answering(TimePoint now) const {
  constexpr std::chrono::seconds recent{5};
  return now - last_answered_ < recent;
}

Endpoints::Endpoints(const std::vector<std::string>& names, int in_flight, std::optional<config::Rate> rate,
                     std::uint64_t seed) {
  for (const auto& name : names)
    endpoints_.emplace_back(name, in_flight, rate, seed++);
}

void Endpoints::answers_came() {
  for (auto& endpoint : endpoints_)
    endpoint.answers_came();
}

Endpoints::Choice Endpoints::choose(std::size_t first, WallTime now) const {
  Choice choice;
  for (auto i = first; i < endpoints_.size(); ++i) {
    const auto leave = endpoints_[i].leave(now);
    if (leave == Endpoint::Leave::given) return {leave, i};
    if (leave == Endpoint::Leave::later) choice.leave = leave;
  }
  return choice;
}

const Endpoint& Endpoints::likely() const {
  const auto available =
      std::ranges::find_if(endpoints_, [](const auto& endpoint) { return !endpoint.breaker().is_open(); });
  return available == endpoints_.end() ? endpoints_.front() : *available;
}

bool Endpoints::is_limited(TimePoint now) const {
  return std::ranges::any_of(endpoints_, [&](const auto& endpoint) { return endpoint.is_limited(now); });
}

std::optional<std::chrono::seconds> Endpoints::time_to_admission(TimePoint now, WallTime wall) const {
  using Wait = std::optional<std::chrono::seconds>;
  std::vector<Wait> waits;
  for (const auto& endpoint : endpoints_)
    waits.push_back(endpoint.time_to_probe(wall));
  // An endpoint without a wait is less than any other.
  const auto least = *std::ranges::min_element(waits);
  const auto closed = std::chrono::ceil<std::chrono::seconds>(likely().closed_for(now));
  return closed > std::chrono::seconds(0) ? std::max(least, Wait(closed)) : least;
}

std::vector<Breaker> Endpoints::breakers() const {
  std::vector<Breaker> breakers;
  for (const auto& endpoint : endpoints_)
    breakers.push_back(endpoint.breaker());
  return breakers;
}

void Endpoints::set_breakers(const std::vector<Breaker>& seen, const std::vector<Breaker>& breakers,
                             TimePoint now) {
  if (seen.size() != endpoints_.size() || breakers.size() != endpoints_.size())
    throw std::invalid_argument("one breaker for each endpoint is needed");
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    auto& endpoint = endpoints_[i];
    const bool knows_better = endpoint.is_answering(now) && !seen[i].is_open();
    if (endpoint.breaker() == seen[i] && !knows_better) endpoint.set_breaker(breakers[i]);
  }
}

}  // namespace mailroom::delivery
