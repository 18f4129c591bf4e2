// The sink of the consumer's thread: batches are composed and recorded here, and delivered by the dispatcher.

#include "delivery/delivery_sink.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <poll.h>
#include <utility>

#include "base/clock.hpp"
#include "delivery/reply_text.hpp"
#include "delivery/token_outcome.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds slow{200};
constexpr Milliseconds claim_lead{1000};

/// Until when the last of the tokens of a message is of use, a day at most, if that is known.
TimePoint end_of(const std::vector<ComposedToken>& tokens) {
  constexpr std::chrono::seconds day{86'400};
  std::int64_t end = 0;
  for (const auto& token : tokens)
    end = std::max(end, token.history.expires_at);
  if (end == 0) return TimePoint::max();
  const auto left = std::chrono::seconds(end) - wall_now().time_since_epoch();
  return steady_now() + std::clamp<Milliseconds>(left, Milliseconds(0), day);
}

}  // namespace

DeliverySink::DeliverySink(std::unique_ptr<Composer> composer, std::unique_ptr<Carrier> carrier,
                           Options options, int stop_fd, Log& log, DeliveryLog& delivery_log,
                           ConsumerObserver& observer)
    : composer_(std::move(composer)),
      options_(options),
      spool_(&log),
      shared_(carrier->endpoints(), options.dispatch.probe_time),
      dispatcher_(std::move(carrier), options.dispatch),
      stop_fd_(stop_fd),
      log_(log),
      delivery_log_(delivery_log),
      observer_(observer),
      random_(options.dispatch.seed),
      was_open_(shared_.names().size()) {}

int DeliverySink::room() const {
  // Nothing is shared, and the next message may have more tokens than the last one.
  if (options_.messages == 1) return batches_.empty() ? Sink::room() : 0;
  int tokens = 0;
  for (const auto& batch : batches_)
    tokens += batch.tokens;
  // Two batches have half each. A batch that was taken over may be larger.
  const int limit = dispatcher_.room(options_.messages);
  const int most = most_open() > 1 && batches_.empty() ? (limit + 1) / 2 : limit;
  return std::max(most * options_.message_limit - tokens, 0);
}

void DeliverySink::begin(const Lease& lease, int line_limit) {
  close_message();
  const auto now = steady_now();
  pace_.began(now);
  spool_.begin_batch();
  batches_.push_back({.lease = lease, .first_message = next_id_, .began = now, .ended = now});
  options_.message_limit = composer_->begin(lease, line_limit);
}

void DeliverySink::add(const TokenRow& row, std::string_view token) {
  auto& batch = batches_.back();
  ++batch.tokens;
  auto history = history_of(row, batch.lease);
  if (options_.policy.per_recipient) history.mailed += open_mails_to(row.counted_as);
  if (auto outcome = outcome_without_attempt(history, options_.policy)) {
    batch.outcomes.push_back(std::move(*outcome));
    return;
  }
  auto added = composer_->add(row, token, history);
  if (const auto* refusal = std::get_if<Refusal>(&added)) {
    history.defect = refusal->reason.c_str();
    batch.outcomes.push_back(*outcome_without_attempt(history, options_.policy));
    return;
  }
  if (auto* withheld = std::get_if<Withheld>(&added)) {
    batch.outcomes.push_back(withheld_outcome(history, withheld->state, std::move(withheld->reason)));
    return;
  }
  if (options_.policy.per_recipient) ++batch.mails_by_recipient[std::string(row.counted_as)];
  if (auto* composed = std::get_if<Composed>(&added)) submit(batch, std::move(*composed));
}

int DeliverySink::open_mails_to(std::string_view recipient) const {
  int mails = 0;
  for (const auto& batch : batches_) {
    const auto found = batch.mails_by_recipient.find(recipient);
    if (found != batch.mails_by_recipient.end()) mails += found->second;
  }
  return mails;
}

void DeliverySink::skip(const TokenRow& row, const char* defect) {
  auto& batch = batches_.back();
  ++batch.tokens;
  batch.outcomes.push_back(*outcome_without_attempt(history_of(row, batch.lease, defect), options_.policy));
}

/// The message that was begun is the last one of the newest batch.
void DeliverySink::close_message() {
  if (batches_.empty()) return;
  if (auto composed = composer_->finish()) submit(batches_.back(), std::move(*composed));
}

void DeliverySink::submit(OpenBatch& batch, Composed composed) {
  auto& kept = batch.messages.emplace_back(std::move(composed));
  batch.carried += static_cast<int>(kept.tokens.size());
  auto& message = kept.message;
  message.id = next_id_++;
  message.batch = batch.lease.batch;
  message.attempt = batch.lease.attempt;
  for (const auto& token : kept.tokens)
    message.attempt = std::max(message.attempt, batch.lease.attempt + token.history.unknowns);
  dispatcher_.submit(message, spool_.keep(std::exchange(kept.bytes, {})), end_of(kept.tokens));
}

BatchOutcome DeliverySink::finish(const std::function<void()>& when_slow) {
  close_message();
  wait_for_answers(when_slow);
  auto& batch = batches_.front();
  for (const auto& outcome : batch.outcomes)
    delivery_log_.outcome(options_.words, outcome, batch.ended);
  const auto accepted = std::ranges::count(batch.outcomes, Outcome::accepted, &TokenOutcome::state);
  // The other side began with this batch when it had finished the one before.
  const auto began = std::max(batch.began, last_ended_);
  last_ended_ = batch.ended;
  pace_.finished(steady_now(), batch.ended - began, batch.carried,
                 options_.messages * options_.message_limit);
  BatchOutcome result{.emitted = static_cast<int>(accepted), .outcomes = std::move(batch.outcomes)};
  batches_.pop_front();
  return result;
}

void DeliverySink::wait_for_answers(const std::function<void()>& when_slow) {
  const auto started = steady_now();
  bool is_slow = false;
  std::optional<TimePoint> stop_requested;
  std::array<pollfd, 2> fds{{{dispatcher_.fd(), POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
  const auto& batch = batches_.front();
  while (batch.concluded < batch.messages.size()) {
    fds[1].revents = 0;
    poll(fds.data(), fds.size(), static_cast<int>(slow.count()));
    auto answered = dispatcher_.take();
    for (auto& dispatched : answered)
      record(std::move(dispatched));
    if (!answered.empty()) note_states(dispatcher_.breakers());
    const auto now = steady_now();
    if (!is_slow && now - started >= slow && when_slow) when_slow();
    is_slow = is_slow || now - started >= slow;
    if (fds[1].revents != 0) {
      stop_requested = now;
      fds[1].fd = -1;
    }
    if (stop_requested && now - *stop_requested >= options_.grace) dispatcher_.cancel();
  }
}

void DeliverySink::record(Dispatched dispatched) {
  const auto id = dispatched.answer.id;
  auto& batch = batches_.size() > 1 && id >= batches_[1].first_message ? batches_[1] : batches_.front();
  const auto& message = batch.messages[static_cast<std::size_t>(id - batch.first_message)];
  auto& answer = dispatched.answer;
  answer.reply = shown_reply(answer.reply, message.tokens);
  for (auto& token : answer.tokens)
    token.reason = shown_reply(token.reason, message.tokens);
  if (answer.throttled || answer.crowded || !dispatched.is_final) note_limit(dispatched);
  if (dispatched.is_final) {
    conclude(batch, message, dispatched);
  } else {
    for (const auto& token : message.tokens)
      observe(answer, batch, token);
  }
}

void DeliverySink::conclude(OpenBatch& batch, const Composed& message, const Dispatched& dispatched) {
  std::uniform_real_distribution<double> jitter(-1, 1);
  for (const auto& token : message.tokens) {
    const auto own = answer_to(dispatched.answer, token);
    observe(own, batch, token);
    batch.outcomes.push_back(
        outcome_of(own, token, dispatched.may_be_taken, options_.policy, jitter(random_)));
  }
  ++batch.concluded;
  batch.ended = std::max(batch.ended, dispatched.at);
  const auto& answer = dispatched.answer;
  if (answer.shows_life()) delivery_log_.available(options_.words, answer.sink, dispatched.at);
}

void DeliverySink::note_states(const std::vector<Breaker>& breakers) {
  const auto& names = shared_.names();
  const auto now = steady_now();
  const bool any_works = std::ranges::any_of(breakers, [](const auto& each) { return !each.is_open(); });
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (breakers[i].is_open()) {
      delivery_log_.unavailable(options_.words, names[i], breakers[i].why, any_works, now);
    } else if (was_open_[i]) {
      delivery_log_.available(options_.words, names[i], now);
    }
    was_open_[i] = breakers[i].is_open();
  }
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

void DeliverySink::observe(const Answer& answer, const OpenBatch& batch, const ComposedToken& token) {
  SinkAnswer seen{.queue = batch.lease.queue,
                  .sink = answer.sink,
                  .outcome = verdict_name(answer.verdict),
                  .code = answer.code,
                  .took = answer.took};
  if (answer.verdict == Verdict::accepted)
    seen.delay = answer.ended.time_since_epoch() - std::chrono::seconds(token.dated);
  observer_.answered(seen);
}

void DeliverySink::consult(SinkBoard& board, bool heard) {
  const auto own = dispatcher_.breakers();
  const auto known = shared_.exchange(board, own, heard);
  if (!known) return;
  dispatcher_.set_breakers(own, *known);
  note_states(dispatcher_.breakers());
}

TimePoint DeliverySink::claims_from() const {
  const auto wait = dispatcher_.time_to_admission();
  // A little earlier, as a claim takes time.
  return wait ? steady_now() + *wait : dispatcher_.next_turn() - claim_lead;
}

void ClaimPace::began(TimePoint now) {
  claim_took_ = finished_at_ ? now - *finished_at_ : std::chrono::nanoseconds(0);
}

void ClaimPace::finished(TimePoint now, std::chrono::nanoseconds busy, int tokens, int whole) {
  finished_at_ = now;
  if (tokens > 0) overlaps_ = busy * whole / tokens > claim_took_ - tokens * token_cost;
}

}  // namespace mailroom
