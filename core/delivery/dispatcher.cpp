// The thread and its caller share the messages under one mutex; whoever changes something submits what may
// leave. It neither claims (consumer/collector) nor records what became of a message (delivery_sink), and an
// answer is weighed by the endpoint that gave it.

#include "delivery/dispatcher.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <poll.h>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"

namespace mailroom::delivery {
namespace {

constexpr Milliseconds longest_patience{200};

/// Of one mail; of several what all of them have in common.
Likeness likeness_of(const Message& message) {
  const auto of = [&](const Envelope& envelope) {
    return Likeness{.sender = lower_case(envelope.author),
                    .kind = domain_of(envelope) + (message.has_files ? " with attachments" : "")};
  };
  if (message.mails.empty()) return of(message.envelope);
  auto likeness = of(message.mails.front().envelope);
  for (const auto& mail : message.mails) {
    const auto other = of(mail.envelope);
    if (other.sender != likeness.sender) likeness.sender.clear();
    if (other.kind != likeness.kind) likeness.kind.clear();
  }
  return likeness;
}

}  // namespace

Dispatcher::Dispatcher(std::unique_ptr<Carrier> carrier, Options options)
    : carrier_(std::move(carrier)),
      options_(options),
      endpoints_(carrier_->endpoints(), options.in_flight, options.rate, options.seed),
      connections_(endpoints_.size(), options.in_flight),
      random_(options.seed) {
  const BlockedSignals blocked;
  keeper_ = std::thread([this] { keep_busy(); });
}

Dispatcher::~Dispatcher() {
  cancel();
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  news_.signal();
  keeper_.join();
  carrier_.reset();
}

void Dispatcher::keep_busy() {
  std::unique_lock lock(mutex_);
  while (!has_ended_) {
    const bool is_idle = pending_.empty();
    const int wait = is_idle ? -1 : static_cast<int>(patience().count());
    lock.unlock();
    std::array<pollfd, 2> fds{{{news_.fd(), POLLIN, 0}, {carrier_->fd(), POLLIN, 0}}};
    poll(fds.data(), is_idle ? 1 : 2, wait);
    news_.clear();
    lock.lock();
    take_answers();
    pump();
  }
}

Milliseconds Dispatcher::patience() {
  const auto now = steady_now();
  auto next = resends_.empty() ? TimePoint::max() : resends_.begin()->first;
  if (!waiting_.empty() && !is_held(waiting_.front())) {
    const auto choice = choose(pending_.at(waiting_.front()));
    if (choice.leave == Endpoint::Leave::given)
      next = std::min(next, endpoints_[choice.place].next_room(now, carrier_->ahead()));
  }
  if (next > now + longest_patience) return longest_patience;
  return std::max(std::chrono::ceil<Milliseconds>(next - now), Milliseconds(1));
}

void Dispatcher::submit(Message message, SpooledText body, TimePoint expires_at) {
  const std::lock_guard lock(mutex_);
  const auto id = message.id;
  const auto now = steady_now();
  const auto refusals = refused_.take(message.envelope.to);
  auto likeness = likeness_of(message);
  results_.expect(message.batch);
  pending_.emplace(id, Pending{.message = std::move(message),
                               .body = std::move(body),
                               .until = std::min(expires_at, now + Pace::longest_wait),
                               .likeness = std::move(likeness),
                               .refusals = refusals});
  enqueue(id);
  pump();
  if (!waiting_.empty() && carrier_->unfinished() > 0) {
    // Answers that nobody was called for make room.
    take_answers();
    pump();
  }
  // Behind others it changes nothing for the thread, which a signal would wake.
  if (pending_.size() == 1 || (!waiting_.empty() && waiting_.front() == id)) news_.signal();
}

void Dispatcher::enqueue(std::int64_t id) {
  const auto was_refused = [&](std::int64_t each) {
    const auto& pending = pending_.at(each);
    return pending.message.was_refused || !pending.refusals.are_none();
  };
  // Those that were refused come last: if it was for themselves, the others show that soon.
  auto place = waiting_.end();
  while (!was_refused(id) && place != waiting_.begin() && was_refused(*std::prev(place)))
    --place;
  waiting_.insert(place, id);
}

void Dispatcher::filled() {
  const std::lock_guard lock(mutex_);
  results_.filled();
  take_answers();
  pump();
}

std::size_t Dispatcher::unfinished() {
  const std::lock_guard lock(mutex_);
  take_answers();
  pump();
  return pending_.size();
}

void Dispatcher::pump() {
  const auto now = steady_now();
  give_back_overdue(now);
  end_search();
  while (submit_next(now)) {
  }
  carrier_->call_below(call_level(now));
}

std::size_t Dispatcher::call_level(TimePoint now) const {
  // What an answer teaches decides then what leaves next.
  if (endpoints_.is_hampered(now)) return std::numeric_limits<std::size_t>::max();
  const int room = options_.in_flight + carrier_->ahead() / 2;
  const bool has_more = !waiting_.empty() || !resends_.empty();
  const auto fewest = results_.fewest_unfinished();
  return std::max(has_more ? static_cast<std::size_t>(room) + 1 : 0,
                  fewest ? pending_.size() - *fewest + 1 : 0);
}

bool Dispatcher::submit_next(TimePoint now) {
  const bool is_resend = is_resend_due(now);
  if (!is_resend && waiting_.empty()) return false;
  const auto id = is_resend ? resends_.begin()->second : waiting_.front();
  const auto choice = choose(pending_.at(id));
  const bool is_given = choice.leave == Endpoint::Leave::given;
  if (choice.leave == Endpoint::Leave::later) return false;
  // What is in flight shows soon whether the endpoint takes nothing at all.
  if (!is_given && carrier_->unfinished() > 0) return false;
  if (is_given) {
    const int ahead = carrier_->ahead();
    const bool is_full = static_cast<int>(carrier_->unfinished()) >= options_.in_flight + ahead;
    if (is_full || !endpoints_[choice.place].has_room(now, ahead)) {
      // What is answered now says nothing of the moment at which it may leave.
      pending_.at(id).clearance = nullptr;
      return false;
    }
  }
  if (is_given && is_held(id)) return false;
  if (is_resend) {
    resends_.erase(resends_.begin());
  } else {
    waiting_.pop_front();
  }
  if (is_refused(pending_.at(id))) {
    give_up(id, "its lease has ended");
    return true;
  }
  if (!is_given) {
    turn_away(id, now, time_away(id, choice));
  } else if (is_resend || !waits_for_domain(id, choice.place, now)) {
    send(id, choice.place, now);
  }
  return true;
}

Endpoints::Choice Dispatcher::choose(const Pending& pending) const {
  return endpoints_.choose(pending.first, wall_now(), pending.likeness);
}

bool Dispatcher::waits_for_domain(std::int64_t id, std::size_t endpoint, TimePoint now) {
  const auto wait = endpoints_[endpoint].wait_of(domain_of(pending_.at(id).message.envelope), now);
  if (!wait) return false;
  conclude(id, {.verdict = Verdict::deferred,
                .sink = endpoints_[endpoint].name(),
                .reply = "waits for its turn, as the other side limits the rate of its domain",
                .wait = wait,
                .is_excused = true,
                .waits_for_turn = true});
  return true;
}

/// True if it waits for its clearance. What the carrier could send now has to have it.
bool Dispatcher::is_held(std::int64_t id) {
  auto& pending = pending_.at(id);
  if (carrier_->asks_for_clearance() || !carrier_->has_session()) return false;
  if (pending.clearance == nullptr) pending.clearance = pending.next_clearance();
  const auto& clearance = pending.clearance;
  return clearance != nullptr && !clearance->ask() && !clearance->is_refused();
}

bool Dispatcher::is_refused(const Pending& pending) {
  const auto refuses = [](const auto& clearance) { return clearance != nullptr && clearance->is_refused(); };
  return refuses(pending.message.clearance) || refuses(pending.clearance);
}

void Dispatcher::send(std::int64_t id, std::size_t endpoint, TimePoint now) {
  auto& pending = pending_.at(id);
  std::string_view body;
  try {
    body = pending.body.read(pending.loaded);
  } catch (const Error& error) {
    return conclude(id, {.verdict = Verdict::deferred, .reply = error.what(), .is_excused = true});
  }
  if (pending.tries == 0) pending.first_left = now;
  pending.departure = endpoints_[endpoint].left(now, wall_now(), options_.probe_time, pending.likeness);
  tell_connections(endpoint, now);
  pending.message.endpoint = endpoint;
  auto message = pending.message;
  message.body = body;
  message.attempt += pending.tries++;
  if (pending.clearance == nullptr) pending.clearance = pending.next_clearance();
  message.clearance = pending.clearance;
  carrier_->submit(std::move(message));
}

std::optional<std::chrono::seconds> Dispatcher::admission() const {
  return endpoints_.time_to_admission(steady_now(), wall_now());
}

void Dispatcher::tell_connections(std::size_t endpoint, TimePoint now) {
  const int most = std::max(endpoints_[endpoint].connections(now), 1);
  if (std::exchange(connections_[endpoint], most) != most) carrier_->limit_connections(endpoint, most);
}

Milliseconds Dispatcher::time_away(std::int64_t id, const Endpoints::Choice& choice) {
  if (choice.leave != Endpoint::Leave::aside) return admission().value_or(std::chrono::seconds(1));
  return endpoints_[choice.place].set_aside(wall_now(), pending_.at(id).likeness);
}

void Dispatcher::turn_away(std::int64_t id, TimePoint now, Milliseconds wait) {
  auto& pending = pending_.at(id);
  if (pending.may_be_taken && now - pending.first_left < options_.resend_for && !is_cancelling_) {
    pending.first = 0;
    resends_.emplace(now + wait, id);
    return;
  }
  if (pending.last) return conclude(id, *std::exchange(pending.last, {}));
  const auto& blocked = endpoints_.front();
  conclude(id, {.sink = blocked.name(), .reply = blocked.breaker().why, .wait = wait});
}

void Dispatcher::give_back_overdue(TimePoint now) {
  if (waiting_.empty() || !endpoints_.is_limited(now)) return;
  const auto& endpoint = endpoints_.likely();
  const auto gap = endpoint.pace().gap();
  // Another sender may have the connections.
  const bool is_closed = endpoint.closed_for(now) > std::chrono::nanoseconds(0);
  std::chrono::nanoseconds turn{};
  std::erase_if(waiting_, [&](std::int64_t id) {
    const auto& pending = pending_.at(id);
    if (pending.until > now && !is_closed) return false;
    refused_.keep(pending.message.envelope.to, pending.refusals);
    conclude(id, {.verdict = Verdict::deferred,
                  .reply = "waited for its turn, as the receiver limits the rate",
                  .wait = std::chrono::floor<std::chrono::seconds>(
                      std::min<std::chrono::nanoseconds>(turn, Pace::longest_wait)),
                  .is_excused = true,
                  .waits_for_turn = true});
    turn += gap;
    return true;
  });
}

/// More were submitted for the search than may be under way.
void Dispatcher::end_search() {
  const bool is_searching = endpoints_.is_searching();
  if (std::exchange(was_searching_, is_searching) && !is_searching) {
    for (const auto id : std::exchange(waiting_, {}))
      turn_away(id, steady_now(), Milliseconds(0));
  }
}

void Dispatcher::cancel() {
  const std::lock_guard lock(mutex_);
  is_cancelling_ = true;
  std::set<std::shared_ptr<Permits>> permits;
  for (const auto& [id, pending] : pending_) {
    if (pending.message.clearance != nullptr) pending.message.clearance->refuse();
    if (pending.message.permits != nullptr) permits.insert(pending.message.permits);
  }
  for (const auto& each : permits)
    each->refuse_all(true);
  carrier_->cancel();
  take_answers();
  for (const auto id : std::exchange(waiting_, {}))
    give_up(id, "stopped before it was sent");
  for (const auto& [time, id] : std::exchange(resends_, {}))
    give_up(id, "stopped before it was sent");
  for (const auto& each : permits)
    each->refuse_all(false);
  is_cancelling_ = false;
}

void Dispatcher::give_back(std::optional<std::int64_t> batch) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](std::int64_t id) {
    if (batch && pending_.at(id).message.batch != *batch) return false;
    give_up(id, "the receiver is busy with the messages before it");
    return true;
  });
}

void Dispatcher::give_up(std::int64_t id, const char* why) {
  conclude(id, {.verdict = Verdict::deferred,
                .sink = endpoints_.front().name(),
                .reply = why,
                .is_excused = true,
                .waits_for_turn = true});
}

double Dispatcher::chance() {
  return std::uniform_real_distribution<double>(0, 1)(random_);
}

}  // namespace mailroom::delivery
