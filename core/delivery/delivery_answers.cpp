// How the sink waits for the answers to its messages, what it records of each, and which come after their
// batch.

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <poll.h>
#include <utility>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "delivery/delivery_sink.hpp"
#include "delivery/reply_text.hpp"

namespace mailroom::delivery {
namespace {

constexpr Milliseconds slow{200};
constexpr Milliseconds lane_patience{1000};    ///< with the messages of other lanes
constexpr Milliseconds answer_margin{30'000};  ///< beyond the time that an attempt may take
constexpr Milliseconds end_margin{75'000};     ///< a token that would be tried again later has expired

/// What the trace of a token says of an attempt; nullopt if the answer is about none. The reply stays out: it
/// may repeat an address or a token.
std::optional<trace::CarriedToken> carried_token(const Answer& answer) {
  if (!answer.was_tried || answer.took.count() == 0) return std::nullopt;
  return trace::CarriedToken{.outcome = verdict_name(answer.verdict),
                             .has_failed = answer.verdict != Verdict::accepted,
                             .code = answer.code,
                             .sink = answer.sink,
                             .ended = answer.ended,
                             .took = answer.took};
}

}  // namespace

void DeliverySink::wait_for_answers(const std::function<void()>& when_slow) {
  const auto started = steady_now();
  bool is_slow = false;
  poll_answers([&](TimePoint now) {
    const auto& batch = batches_.front();
    if (!is_slow && now - started >= slow && when_slow) when_slow();
    is_slow = is_slow || now - started >= slow;
    if (batch.concluded < batch.messages.size())
      delivery_log_.waits(options_.words, awaited_in(batch), batch.ended, now);
    return batch.concluded == batch.messages.size() || may_leave_behind(started, now);
  });
}

/// Where the first message without an answer has gone.
std::string DeliverySink::awaited_in(const OpenBatch& batch) const {
  const auto open = std::ranges::find(batch.messages, false, &OpenMessage::is_concluded);
  const auto& names = lanes_[open->composed.lane]->names();
  return joined(names, ", ");
}

void DeliverySink::poll_answers(const std::function<bool(TimePoint now)>& is_done) {
  std::vector<pollfd> fds{{stopped_at_ ? -1 : stop_fd_, POLLIN, 0}, {bell_->fd(), POLLIN, 0}};
  for (const auto& lane : lanes_)
    fds.push_back({lane->dispatcher().fd(), POLLIN, 0});
  auto kept_at = steady_now();
  while (true) {
    take_answers();
    const auto now = steady_now();
    if (is_done(now)) return;
    if (record_ != nullptr && now - kept_at >= slow) {
      record_->keep();
      kept_at = now;
    }
    clear();
    if (fds[0].revents != 0) {
      stopped_at_ = now;
      fds[0].fd = -1;
    }
    if (stopped_at_ && now - *stopped_at_ >= options_.grace) {
      for (const auto& lane : lanes_)
        lane->dispatcher().cancel();
      continue;
    }
    fds[0].revents = 0;
    poll(fds.data(), fds.size(), static_cast<int>(slow.count()));
  }
}

void DeliverySink::take_answers() {
  for (const auto& lane : lanes_) {
    auto answered = lane->dispatcher().take();
    for (auto& dispatched : answered)
      record(std::move(dispatched));
    if (!answered.empty()) lane->note_states(delivery_log_, options_.words);
  }
}

void DeliverySink::record(Dispatched dispatched) {
  const auto id = dispatched.answer.id;
  if (const auto late = late_.find(id); late != late_.end()) {
    read(dispatched, late->second.composed);
    if (!dispatched.is_final) return;
    const auto message = std::move(late_.extract(late).mapped());
    answered_late_.push_back(late_receipt(message, dispatched));
    return;
  }
  const auto found = std::find_if(batches_.rbegin(), batches_.rend(),
                                  [&](const OpenBatch& batch) { return batch.first_message <= id; });
  const auto place = found == batches_.rend() ? 0 : static_cast<std::size_t>(id - found->first_message);
  // Its batch was forgotten.
  if (found == batches_.rend() || place >= found->messages.size()) return;
  auto& batch = *found;
  auto& message = batch.messages[place];
  read(dispatched, message.composed);
  if (dispatched.is_final) {
    conclude(batch, message, dispatched);
  } else {
    for (const auto& token : message.composed.tokens)
      observe(dispatched.answer, batch.lease, token);
  }
}

claim::Receipt DeliverySink::late_receipt(const LateMessage& message, const Dispatched& dispatched) {
  auto outcomes = outcomes_of(message.lease, message.composed, dispatched);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    delivery_log_.outcome(options_.words, outcomes[i], dispatched.at);
    // The deferral counted these.
    outcomes[i].unknowns -= message.composed.tokens[i].history.take_overs + (message.may_be_taken ? 1 : 0);
  }
  return {.lease = message.lease, .counts = {}, .outcomes = std::move(outcomes)};
}

void DeliverySink::read(Dispatched& dispatched, const Composed& message) {
  auto& answer = dispatched.answer;
  answer.reply = shown_reply(answer.reply, message.tokens);
  for (auto& token : answer.tokens)
    token.reason = shown_reply(token.reason, message.tokens);
  lanes_[message.lane]->note(answer);
  if (answer.throttled || answer.crowded || !dispatched.is_final) note_limit(dispatched);
}

void DeliverySink::conclude(OpenBatch& batch, OpenMessage& message, const Dispatched& dispatched) {
  std::ranges::move(outcomes_of(batch.lease, message.composed, dispatched),
                    std::back_inserter(batch.outcomes));
  message.is_concluded = true;
  ++batch.concluded;
  batch.settled += static_cast<int>(message.composed.tokens.size());
  batch.ended = std::max(batch.ended, dispatched.at);
}

std::vector<claim::TokenOutcome> DeliverySink::outcomes_of(const claim::Lease& lease, const Composed& message,
                                                           const Dispatched& dispatched) {
  std::uniform_real_distribution<double> jitter(-1, 1);
  std::vector<claim::TokenOutcome> outcomes;
  for (const auto& token : message.tokens) {
    auto own = answer_to(dispatched.answer, token);
    const auto why = withheld_.extract(token.history.token);
    if (why && (own.verdict == Verdict::deferred || own.verdict == Verdict::unavailable)) {
      auto history = token.history;
      history.unknowns += dispatched.may_be_taken ? 1 : 0;
      auto outcome = withheld_outcome(history, fate::Outcome::cancelled, suppressed_reason(why.mapped()));
      outcome.unknowns += dispatched.may_be_taken ? 1 : 0;
      outcomes.push_back(std::move(outcome));
      continue;
    }
    observe(own, lease, token);
    const bool is_recognised = packs_[message.lane].recognises;
    const bool was_lost = dispatched.may_be_taken || take_overs(lease, *lanes_[message.lane]) > 0;
    if (is_recognised && was_lost && own.verdict == Verdict::accepted)
      own.reply += " (sent again with the same key, as an answer was lost)";
    outcomes.push_back(
        outcome_of(own, token, dispatched.may_be_taken && !is_recognised, options_.policy, jitter(random_)));
  }
  const auto& answer = dispatched.answer;
  if (answer.shows_life()) delivery_log_.available(options_.words, answer.sink, dispatched.at);
  return outcomes;
}

bool DeliverySink::may_leave_behind(TimePoint since, TimePoint now) const {
  if (!has_several_lanes()) return false;
  return std::ranges::all_of(batches_.front().messages, [&](const auto& message) {
    if (message.is_concluded) return true;
    const bool has_waited = lanes_[message.composed.lane]->is_slow() || now - since >= lane_patience;
    // One that would end before its answer can come must not be said to have ended.
    return has_waited && message.until - now > options_.dispatch.probe_time + answer_margin + end_margin;
  });
}

void DeliverySink::leave_behind() {
  auto& batch = batches_.front();
  const auto left = [&] { return batch.concluded < batch.messages.size(); };
  if (left()) {
    for (const auto& lane : lanes_)
      lane->dispatcher().give_back();
    take_answers();
  }
  if (!left()) return;
  for (auto& message : batch.messages) {
    if (message.is_concluded) continue;
    auto& composed = message.composed;
    lanes_[composed.lane]->is_late();
    // What was not on record as begun does not leave after the record that is made now.
    const bool may_be_taken = !batch.clearances[composed.lane]->refuse();
    for (const auto& token : composed.tokens) {
      batch.outcomes.push_back(
          unanswered_outcome(token.history, options_.dispatch.probe_time + answer_margin, may_be_taken));
    }
    late_.emplace(
        composed.message.id,
        LateMessage{.lease = batch.lease, .composed = std::move(composed), .may_be_taken = may_be_taken});
  }
}

bool DeliverySink::is_asked(std::size_t lane) const {
  if (std::ranges::any_of(batches_, [&](const auto& batch) { return batch.clearances[lane]->is_asked(); }))
    return true;
  // An attempt asks for the lease as well.
  return std::ranges::any_of(permits_[lane]->asked(), [](const auto& permit) {
    return !permit->of_lease()->ask() && permit->of_lease()->is_asked();
  });
}

void DeliverySink::clear() {
  bell_->clear();
  clear_leases();
  permit();
}

void DeliverySink::clear_leases() {
  std::vector<std::size_t> asking;
  std::vector<std::string> sinks;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (!is_asked(i)) continue;
    asking.push_back(i);
    std::ranges::copy(lanes_[i]->names(), std::back_inserter(sinks));
  }
  if (asking.empty()) return;
  std::vector<claim::Lease> leases;
  for (const auto& batch : batches_)
    leases.push_back(batch.lease);
  const auto held = record_->begin(leases, sinks);
  if (!held) return;
  const auto now = steady_now();
  for (const auto lane : asking) {
    for (const auto& batch : batches_) {
      const bool is_held = std::ranges::find(*held, batch.lease.batch) != held->end();
      if (is_held) {
        batch.clearances[lane]->give();
      } else {
        batch.clearances[lane]->refuse();
      }
    }
    lanes_[lane]->begun(now);
    lanes_[lane]->dispatcher().clear();
  }
}

void DeliverySink::permit() {
  std::vector<std::shared_ptr<Clearance>> ready;
  std::vector<std::int64_t> tokens;
  for (const auto& lane : permits_) {
    for (auto& permit : lane->asked()) {
      if (permit->of_lease()->is_refused()) {
        permit->refuse();
      } else if (permit->of_lease()->is_given()) {
        std::ranges::copy(permit->tokens(), std::back_inserter(tokens));
        ready.push_back(std::move(permit));
      }
    }
  }
  if (ready.empty()) return;
  auto withheld = record_->withheld(tokens);
  if (!withheld) return;
  for (auto& [token, reason] : *withheld)
    withheld_[token] = std::move(reason);
  for (const auto& permit : ready) {
    if (std::ranges::any_of(permit->tokens(), [&](auto token) { return withheld_.contains(token); })) {
      permit->refuse();
    } else {
      permit->give();
    }
  }
  for (const auto& lane : lanes_)
    lane->dispatcher().clear();
}

std::vector<std::string> DeliverySink::sinks_in_session() const {
  const auto now = steady_now();
  std::vector<std::string> sinks;
  for (const auto& lane : lanes_) {
    if (lane->is_in_session(now)) std::ranges::copy(lane->names(), std::back_inserter(sinks));
  }
  return sinks;
}

/// Which lane had the mails of a sink that is no longer configured is not known.
int DeliverySink::take_overs(const claim::Lease& lease, const Lane& lane) const {
  const auto is_another = [&](const std::string& sink) {
    return std::ranges::none_of(lanes_, [&](const auto& each) { return each->is_among({sink}); });
  };
  return static_cast<int>(std::ranges::count_if(lease.earlier, [&](const auto& sinks) {
    return lane.is_among(sinks) || std::ranges::any_of(sinks, is_another);
  }));
}

void DeliverySink::note_limit(const Dispatched& dispatched) {
  constexpr std::chrono::minutes silence{5};
  if (warned_of_limit_ && dispatched.at - *warned_of_limit_ < silence) return;
  warned_of_limit_ = dispatched.at;
  const auto& answer = dispatched.answer;
  const auto& words = options_.words;
  const auto text = answer.throttled ? fmt::format("the {} asks for a lower rate, and {} wait for their turn",
                                                   words.side, words.messages)
                    : answer.before_message
                        ? fmt::format("the {} refuses a further connection", words.side)
                        : fmt::format("the {} takes fewer connections than send.connections", words.side);
  log_.warn(text,
            {{words.side, answer.sink}, {"code", answer.code}, {"reply", without_addresses(answer.reply)}});
}

void DeliverySink::observe(const Answer& answer, const claim::Lease& lease, const ComposedToken& token) {
  consumer::SinkAnswer seen{.queue = lease.queue,
                            .sink = answer.sink,
                            .outcome = verdict_name(answer.verdict),
                            .code = answer.code,
                            .took = answer.took};
  if (answer.verdict == Verdict::accepted)
    seen.delay = answer.ended.time_since_epoch() - std::chrono::seconds(token.dated);
  const auto& trace = token.history.trace;
  if (const auto carried = trace ? carried_token(answer) : std::nullopt)
    seen.trace = tracer_->carried(*trace, *carried);
  observer_.answered(seen);
}

std::vector<claim::Receipt> DeliverySink::take_late() {
  if (!late_.empty()) take_answers();
  return std::exchange(answered_late_, {});
}

void DeliverySink::finish_late() {
  poll_answers([&](TimePoint) { return late_.empty(); });
}

}  // namespace mailroom::delivery
