// Two threads share the lines: the consumer's, and one that keeps the carrier busy meanwhile.

#include "delivery/carrier_sink.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/blocked_signals.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "delivery/line_outcome.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds slow_answer{200};

}  // namespace

CarrierSink::CarrierSink(std::unique_ptr<Carrier> carrier, Options options, int stop_fd, Log& log,
                         ConsumerObserver& observer)
    : carrier_(std::move(carrier)),
      name_(carrier_->name()),
      options_(options),
      stop_fd_(stop_fd),
      log_(log),
      observer_(observer),
      random_(options.seed),
      shared_({name_}, options.timeout),
      rate_(options.seed),
      news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (news_ < 0) throw Error(ExitCode::failed, "cannot make an eventfd");
  const BlockedSignals blocked;
  keeper_ = std::thread([this] { keep_in_flight(); });
}

CarrierSink::~CarrierSink() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  eventfd_write(news_, 1);
  keeper_.join();
  close(news_);
}

void CarrierSink::keep_in_flight() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool is_idle = lines_.empty();
    const int patience = is_idle ? -1 : static_cast<int>(time_to_wait().count());
    lock.unlock();
    std::array<pollfd, 2> fds{{{news_, POLLIN, 0}, {carrier_->fd(), POLLIN, 0}}};
    poll(fds.data(), is_idle ? 1 : 2, patience);
    eventfd_t count = 0;
    eventfd_read(news_, &count);
    lock.lock();
    if (has_ended_) return;
    take_answers();
    pump();
  }
}

std::size_t CarrierSink::most_open() const {
  const std::lock_guard lock(mutex_);
  return batches_open();
}

int CarrierSink::room() const {
  const std::lock_guard lock(mutex_);
  // Nothing is shared, and the next line may be longer than the last one.
  if (options_.lines == 1) return batches_.empty() ? Sink::room() : 0;
  // A batch that was taken over may be larger.
  int tokens = 0;
  for (const auto& batch : batches_)
    tokens += batch.tokens;
  // Two batches have half of the lines each.
  const int lines = batches_open() > 1 && batches_.empty() ? (options_.lines + 1) / 2 : options_.lines;
  return std::max(lines * options_.line_limit - tokens, 0);
}

void CarrierSink::begin(const Lease& lease, int line_limit) {
  const std::lock_guard lock(mutex_);
  if (!writer_.is_empty()) close_line();
  const auto now = steady_now();
  pace_.began(now);
  options_.line_limit = line_limit;
  batches_.push_back({.lease = lease, .first_line = next_id_, .began = now, .ended = now});
  writer_.begin(lease, line_limit);
}

void CarrierSink::add(const TokenRow& row, const TokenText& token) {
  const std::lock_guard lock(mutex_);
  auto& batch = batches_.back();
  ++batch.tokens;
  auto history = history_of(row, batch.lease);
  if (auto outcome = outcome_without_attempt(history, options_.policy)) {
    batch.outcomes.push_back(std::move(*outcome));
  } else if (writer_.add(row, token, std::move(history))) {
    close_line();
    pump();
  }
}

void CarrierSink::skip(const TokenRow& row, const char* defect) {
  const std::lock_guard lock(mutex_);
  auto& batch = batches_.back();
  ++batch.tokens;
  batch.outcomes.push_back(*outcome_without_attempt(history_of(row, batch.lease, defect), options_.policy));
}

/// The line that was begun is the last one of the newest batch.
void CarrierSink::close_line() {
  auto& line = lines_[next_id_] = writer_.take();
  line.parcel.id = next_id_;
  line.parcel.body = line.body;
  ++batches_.back().lines;
  waiting_.push_back(next_id_++);
  if (lines_.size() == 1) eventfd_write(news_, 1);
}

void CarrierSink::take_answers() {
  for (const auto& answer : carrier_->take())
    record(answer);
}

CarrierSink::OpenBatch& CarrierSink::batch_of(std::int64_t line) {
  return batches_.size() > 1 && line >= batches_[1].first_line ? batches_[1] : batches_.front();
}

BatchOutcome CarrierSink::finish(const std::function<void()>& when_slow) {
  // The thread does nothing meanwhile.
  const std::lock_guard lock(mutex_);
  if (!writer_.is_empty()) close_line();
  wait_for_answers(when_slow);
  report_answers();
  auto& batch = batches_.front();
  for (const auto& outcome : batch.outcomes)
    log_outcome(outcome);
  const auto accepted = std::ranges::count(batch.outcomes, DeliveryState::accepted, &TokenOutcome::state);
  // The other side began with this batch when it had finished the one before.
  const auto began = std::max(batch.began, last_ended_);
  last_ended_ = batch.ended;
  pace_.finished(steady_now(), batch.ended - began, batch.handed, options_.lines * options_.line_limit);
  BatchOutcome result{.emitted = static_cast<int>(accepted), .outcomes = std::move(batch.outcomes)};
  batches_.pop_front();
  return result;
}

void CarrierSink::wait_for_answers(const std::function<void()>& when_slow) {
  const auto started = steady_now();
  bool is_slow = false;
  std::optional<TimePoint> stop_requested;
  std::array<pollfd, 2> fds{{{carrier_->fd(), POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
  is_stopped_ = false;
  const auto& batch = batches_.front();
  for (pump(); batch.concluded < batch.lines; pump()) {
    fds[0].revents = 0;
    fds[1].revents = 0;
    poll(fds.data(), fds.size(), static_cast<int>(time_to_wait().count()));
    take_answers();
    report_answers();
    const auto now = steady_now();
    if (!is_slow && now - started >= slow_answer && when_slow) when_slow();
    is_slow = is_slow || now - started >= slow_answer;
    if (fds[1].revents != 0) {
      stop_requested = now;
      fds[1].fd = -1;
    }
    if (stop_requested && now - *stop_requested >= options_.grace) stop();
  }
}

Milliseconds CarrierSink::time_to_wait() const {
  const bool may_submit =
      !breaker_.is_open() && static_cast<int>(carrier_->unfinished()) < options_.in_flight;
  const bool waits_for_turn = !waiting_.empty() && rate_.limit();
  if ((resends_.empty() && !waits_for_turn) || !may_submit) return slow_answer;
  const auto first = waits_for_turn ? rate_.next() : std::max(resends_.begin()->first, rate_.next());
  const auto left = std::chrono::ceil<Milliseconds>(first - steady_now());
  return std::clamp(left, Milliseconds(1), slow_answer);
}

/// Waits for nothing more.
void CarrierSink::stop() {
  is_stopped_ = true;
  carrier_->cancel();
  take_answers();
  for (const auto id : waiting_)
    give_back(id, "stopped before it was sent");
  waiting_.clear();
  for (const auto& [time, id] : resends_)
    give_back(id, "stopped before it was answered");
  resends_.clear();
}

void CarrierSink::pump() {
  while (static_cast<int>(carrier_->unfinished()) < options_.in_flight) {
    if (breaker_.is_open()) return submit_probe();
    if (rate_.next() > steady_now() || !submit_next()) return;
  }
}

bool CarrierSink::submit_next() {
  if (!resends_.empty() && resends_.begin()->first <= steady_now()) {
    const auto id = resends_.begin()->second;
    resends_.erase(resends_.begin());
    submit(id);
    return true;
  }
  if (waiting_.empty()) return false;
  const auto id = waiting_.front();
  waiting_.pop_front();
  submit(id);
  return true;
}

void CarrierSink::submit(std::int64_t id) {
  auto& line = lines_.at(id);
  line.submitted = steady_now();
  if (line.tries == 0) line.first_submitted = line.submitted;
  rate_.left(line.submitted);
  auto parcel = line.parcel;
  int unknowns = 0;
  for (const auto& token : line.tokens)
    unknowns = std::max(unknowns, token.history.unknowns);
  parcel.attempt = batch_of(id).lease.attempt + unknowns + line.tries;
  ++line.tries;
  line.is_in_flight = true;
  submitted_at_ = wall_now();
  carrier_->submit(std::move(parcel));
}

void CarrierSink::record(const Answer& answer) {
  const auto found = lines_.find(answer.id);
  if (found == lines_.end()) return;
  found->second.is_in_flight = false;
  note_state(answer);
  note_rate(found->second, answer);
  if (!is_sent_again(found->second, answer)) conclude(answer.id, answer);
}

/// True if the line is to be sent again, as it may have been taken, or came too early.
bool CarrierSink::is_sent_again(CarriedLine& line, const Answer& answer) {
  if (waits_for_turn(line, answer)) {
    resends_.emplace(rate_.next(), line.parcel.id);
    return true;
  }
  line.may_be_taken = line.may_be_taken || answer.verdict == ParcelVerdict::unknown;
  const bool is_final =
      answer.verdict == ParcelVerdict::accepted || answer.verdict == ParcelVerdict::rejected;
  if (!line.may_be_taken || is_final || is_stopped_) return false;
  if (options_.policy.when_unknown == WhenUnknown::hold) return false;
  const auto wait = std::max(resend_delay(line.tries, chance()), answer.wait.value_or(Milliseconds(0)));
  const auto next = steady_now() + wait;
  if (next - line.first_submitted >= options_.resend_for) return false;
  log_.debug("a line is sent again",
             {{"message", line.parcel.message_id}, {"reason", shown_reply(answer.reply, line.tokens)}});
  resends_.emplace(next, line.parcel.id);
  return true;
}

void CarrierSink::give_back(std::int64_t id, const std::string& why) {
  const auto& line = lines_.at(id);
  Answer answer;
  answer.verdict = line.may_be_taken ? ParcelVerdict::unknown : ParcelVerdict::unavailable;
  answer.sink = name_;
  answer.reply = why;
  if (const auto wait = time_to_admission()) answer.wait = *wait;
  conclude(id, answer);
}

void CarrierSink::conclude(std::int64_t id, const Answer& answer) {
  const auto line = std::move(lines_.extract(id).mapped());
  auto& batch = batch_of(id);
  auto judged = answer;
  judged.reply = shown_reply(answer.reply, line.tokens);
  for (auto& token : judged.tokens)
    token.reason = shown_reply(token.reason, line.tokens);
  const bool is_open =
      judged.verdict == ParcelVerdict::unavailable || judged.verdict == ParcelVerdict::deferred;
  if (line.may_be_taken && is_open) judged.verdict = ParcelVerdict::unknown;
  if (judged.verdict == ParcelVerdict::unavailable && !judged.wait) {
    if (const auto wait = time_to_admission()) judged.wait = *wait;
  }
  for (const auto& token : line.tokens) {
    const auto delivery = delivery_of(judged, token);
    observe(delivery, batch, token);
    batch.outcomes.push_back(
        outcome_of(delivery, token, line.may_be_taken, options_.policy, 2 * chance() - 1));
  }
  batch.handed += static_cast<int>(line.tokens.size());
  batch.ended = steady_now();
  ++batch.concluded;
}

void CarrierSink::observe(const Delivery& delivery, const OpenBatch& batch, const CarriedToken& token) {
  SinkAnswer seen{.queue = batch.lease.queue,
                  .sink = delivery.relay,
                  .outcome = mail_outcome_name(delivery.outcome),
                  .code = delivery.code,
                  .took = delivery.took};
  if (delivery.outcome == MailOutcome::accepted)
    seen.delay = delivery.ended.time_since_epoch() - std::chrono::seconds(token.created_at);
  seen_.push_back(std::move(seen));
}

/// The observer is for the consumer's thread.
void CarrierSink::report_answers() {
  for (const auto& seen : seen_)
    observer_.answered(seen);
  seen_.clear();
}

void CarrierSink::log_outcome(const TokenOutcome& outcome) {
  const auto* const state = delivery_state_name(outcome.state);
  const auto reason = outcome.code == 0 ? outcome.reply : fmt::format("{} {}", outcome.code, outcome.reply);
  if (outcome.state == DeliveryState::rejected || outcome.state == DeliveryState::unknown) {
    log_.warn("token not accepted", {{"token", outcome.token}, {"state", state}, {"reason", reason}});
  } else {
    log_.debug("token", {{"token", outcome.token}, {"state", state}, {"reason", reason}});
  }
}

double CarrierSink::chance() {
  return std::uniform_real_distribution<double>(0, 1)(random_);
}

}  // namespace mailroom
