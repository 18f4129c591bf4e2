// The sink of the consumer's thread: makes messages of a batch, which the dispatcher delivers.

#include "delivery/delivery_sink.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace mailroom::delivery {
namespace {

constexpr Milliseconds claim_lead{1000};
/// Tokens, of which hardly any leaves.
constexpr int search_claim = 500;
/// How long a message that the receiver recognises is sent again while its answer is lost.
constexpr Milliseconds recognised_for{600'000};
constexpr std::size_t longest_pack = 4U << 20U;  ///< bytes

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

/// What its trace says of a token: never its text or an address.
trace::TracedToken traced_token(const claim::TokenRow& row, const claim::Lease& lease) {
  return {.traceparent = row.trace.traceparent,
          .queue = lease.queue,
          .action = row.action->name,
          .token = row.id,
          .message = row.message.value_or(0),
          .asked_at = row.trace.asked_at,
          .was_tried = row.trace.was_tried || row.attempts > 0 || row.unknowns > 0 ||
                       std::ranges::any_of(lease.earlier, [](const auto& sinks) { return !sinks.empty(); })};
}

}  // namespace

DeliverySink::DeliverySink(std::unique_ptr<Composer> composer, std::vector<Way> ways, Options options,
                           int stop_fd, Log& log, DeliveryLog& delivery_log,
                           consumer::ConsumerObserver& observer, trace::MailTracer* tracer)
    : composer_(std::move(composer)),
      options_(options),
      spool_(&log),
      stop_fd_(stop_fd),
      log_(log),
      delivery_log_(delivery_log),
      observer_(observer),
      tracer_(tracer),
      random_(options.dispatch.seed) {
  for (auto& way : ways) {
    auto dispatch = options_.dispatch;
    dispatch.rate = way.rate;
    if (way.recognises) dispatch.resend_for = recognised_for;
    lanes_.push_back(std::make_unique<Lane>(std::move(way.carrier), dispatch));
    packs_.push_back({.together = way.together, .recognises = way.recognises});
    permits_.push_back(std::make_shared<Permits>(bell_));
    ++options_.dispatch.seed;
  }
  options_.policy.is_recognised = std::ranges::all_of(packs_, &Pack::recognises);
}

int DeliverySink::room() const {
  // Nothing is shared, and the next message may have more tokens than the last one.
  if (options_.messages == 1) return batches_.empty() ? consumer::Sink::room() : 0;
  int tokens = 0;
  // What a lane has turned away must not keep others from being busy.
  for (const auto& batch : batches_)
    tokens += has_several_lanes() ? batch.tokens - batch.settled : batch.tokens;
  // Two batches have half each. A batch that was taken over may be larger.
  const int together = packs_.front().together;
  const int packs = (options_.messages + together - 1) / together;
  const auto& first = lanes_.front()->dispatcher();
  const bool is_searching = !has_several_lanes() && first.is_searching();
  const int limit = has_several_lanes() ? options_.messages
                    : is_searching      ? std::max(options_.messages, search_claim)
                                        : std::min(options_.messages, first.room(packs) * together);
  const int most = most_open() > 1 && batches_.empty() && !is_searching ? (limit + 1) / 2 : limit;
  return std::max(most * options_.message_limit - tokens, 0);
}

void DeliverySink::begin(const claim::Lease& lease, int line_limit) {
  close_message();
  const auto now = steady_now();
  const bool is_alone = batches_.empty();
  pace_.began(now, is_alone);
  for (auto& batch : batches_)
    batch.is_alone = false;
  spool_.begin_batch();
  auto& batch = batches_.emplace_back(
      OpenBatch{.lease = lease, .first_message = next_id_, .is_alone = is_alone, .began = now, .ended = now});
  for (const auto& lane : lanes_) {
    const bool is_on_record = record_ == nullptr || lane->is_among(lease.begun);
    batch.clearances.push_back(std::make_shared<Clearance>(bell_, is_on_record));
  }
  is_filling_ = true;
  for (const auto& lane : lanes_)
    lane->dispatcher().fill(lease.batch);
  options_.message_limit = composer_->begin(lease, line_limit);
}

void DeliverySink::add(const claim::TokenRow& row, std::string_view token) {
  auto& batch = batches_.back();
  ++batch.tokens;
  auto history = history_of(row, take_overs(batch.lease, *lanes_[composer_->lane_of(row)]));
  if (options_.policy.per_recipient) history.mailed += open_mails_to(row.counted_as);
  if (auto outcome = outcome_without_attempt(history, options_.policy)) {
    batch.outcomes.push_back(std::move(*outcome));
    return;
  }
  auto added = compose(row, token, history);
  if (const auto* refusal = std::get_if<mail::Refusal>(&added)) {
    history.defect = refusal->reason.c_str();
    batch.outcomes.push_back(*outcome_without_attempt(history, options_.policy));
    return;
  }
  if (auto* withheld = std::get_if<Withheld>(&added)) {
    batch.outcomes.push_back(withheld_outcome(history, withheld->state, std::move(withheld->reason)));
    return;
  }
  if (options_.policy.per_recipient) ++batch.mails_by_recipient[std::string(row.counted_as)];
  if (auto* composed = std::get_if<Composed>(&added)) pack(batch, std::move(*composed));
}

Composer::Added DeliverySink::compose(const claim::TokenRow& row, std::string_view token,
                                      DeliveryHistory& history) {
  if (tracer_ == nullptr) return composer_->add(row, token, history);
  const auto& lease = batches_.back().lease;
  const auto started = trace::span_now();
  history.trace = tracer_->trace(traced_token(row, lease), started);
  auto added = composer_->add(row, token, history);
  if (!std::holds_alternative<Withheld>(added)) {
    tracer_->rendered(*history.trace, lease.batch, started, trace::span_now(),
                      std::holds_alternative<mail::Refusal>(added));
  }
  return added;
}

void DeliverySink::pack(OpenBatch& batch, Composed composed) {
  auto& pack = packs_[composed.lane];
  if (pack.recognises) {
    for (auto& token : composed.tokens)
      token.history.take_overs = 0;
  }
  if (pack.together == 1 || composed.message.has_files || composed.message.is_raw)
    return submit(batch, std::move(composed));
  if (pack.begun && pack.begun->bytes.size() + composed.bytes.size() > longest_pack) close_pack(batch, pack);
  const PackedMail mail{.token = composed.message.tokens.front(),
                        .envelope = composed.message.envelope,
                        .size = composed.bytes.size()};
  if (!pack.begun) {
    pack.begun = std::move(composed);
  } else {
    auto& begun = *pack.begun;
    begun.bytes += composed.bytes;
    begun.message.tokens.push_back(mail.token);
    begun.message.created_at = std::max(begun.message.created_at, composed.message.created_at);
    begun.tokens.push_back(std::move(composed.tokens.front()));
    begun.message.envelope = {};
    if (begun.message.action != composed.message.action) begun.message.action = "mixed";
  }
  auto& mails = pack.begun->message.mails;
  mails.push_back(mail);
  if (static_cast<int>(mails.size()) == pack.together) close_pack(batch, pack);
}

void DeliverySink::close_pack(OpenBatch& batch, Pack& pack) {
  if (!pack.begun) return;
  auto composed = *std::exchange(pack.begun, std::nullopt);
  if (composed.message.mails.size() == 1) composed.message.mails.clear();
  submit(batch, std::move(composed));
}

int DeliverySink::open_mails_to(std::string_view recipient) const {
  int mails = 0;
  for (const auto& batch : batches_) {
    const auto found = batch.mails_by_recipient.find(recipient);
    if (found != batch.mails_by_recipient.end()) mails += found->second;
  }
  return mails;
}

void DeliverySink::skip(const claim::TokenRow& row, const char* defect) {
  auto& batch = batches_.back();
  ++batch.tokens;
  const int earlier = take_overs(batch.lease, *lanes_[composer_->lane_of(row)]);
  batch.outcomes.push_back(*outcome_without_attempt(history_of(row, earlier, defect), options_.policy));
}

/// The messages that were begun are the last ones of the newest batch.
void DeliverySink::close_message() {
  if (!std::exchange(is_filling_, false)) return;
  if (auto composed = composer_->finish()) submit(batches_.back(), std::move(*composed));
  for (auto& pack : packs_)
    close_pack(batches_.back(), pack);
  for (const auto& lane : lanes_)
    lane->dispatcher().filled();
}

void DeliverySink::submit(OpenBatch& batch, Composed composed) {
  const auto until = end_of(composed.tokens);
  auto& kept = batch.messages.emplace_back(OpenMessage{.composed = std::move(composed), .until = until});
  const auto& tokens = kept.composed.tokens;
  batch.carried += static_cast<int>(tokens.size());
  auto& message = kept.composed.message;
  message.clearance = batch.clearances[kept.composed.lane];
  if (record_ != nullptr &&
      std::ranges::any_of(tokens, [](const auto& token) { return token.history.has_topic; }))
    message.permits = permits_[kept.composed.lane];
  message.id = next_id_++;
  message.batch = batch.lease.batch;
  message.attempt = batch.lease.attempt;
  for (const auto& token : tokens)
    message.attempt = std::max(message.attempt, batch.lease.attempt + token.history.unknowns);
  message.was_refused =
      std::ranges::any_of(tokens, [](const auto& token) { return token.history.attempts > 0; });
  auto& lane = *lanes_[kept.composed.lane];
  const auto now = steady_now();
  if (auto answer = has_several_lanes() ? lane.turn_away(now) : std::nullopt) {
    answer->id = message.id;
    return record({.answer = std::move(*answer), .at = now});
  }
  lane.dispatcher().submit(std::move(message), spool_.keep(std::exchange(kept.composed.bytes, {})), until);
}

consumer::BatchOutcome DeliverySink::finish(const std::function<void()>& when_slow) {
  if (batches_.size() == 1) close_message();
  wait_for_answers(when_slow);
  delivery_log_.waits_no_longer(options_.words, steady_now());
  leave_behind();
  auto& batch = batches_.front();
  for (const auto& outcome : batch.outcomes)
    delivery_log_.outcome(options_.words, outcome, batch.ended);
  const auto accepted =
      std::ranges::count(batch.outcomes, fate::Outcome::accepted, &claim::TokenOutcome::state);
  // The receiver began with this batch when it had finished the one before.
  const auto began = std::max(batch.began, last_ended_);
  last_ended_ = batch.ended;
  pace_.finished(steady_now(), batch.ended - began, batch.carried, options_.messages * options_.message_limit,
                 batch.is_alone);
  if (tracer_ != nullptr) tracer_->finished(batch.lease.batch);
  consumer::BatchOutcome result{.emitted = static_cast<int>(accepted), .outcomes = std::move(batch.outcomes)};
  batches_.pop_front();
  return result;
}

/// What it has at the carrier may be taken, and its answers come to nothing.
void DeliverySink::forget() {
  composer_->finish();
  for (auto& pack : packs_)
    pack.begun.reset();
  is_filling_ = false;
  const auto batch = std::move(batches_.back());
  batches_.pop_back();
  for (const auto& clearance : batch.clearances)
    clearance->refuse();
  for (const auto& lane : lanes_) {
    lane->dispatcher().filled();
    lane->dispatcher().give_back(batch.lease.batch);
  }
  if (tracer_ != nullptr) tracer_->finished(batch.lease.batch);
}

void DeliverySink::consult(claim::SinkBoard& board, bool heard) {
  board.announce(sinks_in_session());
  for (const auto& lane : lanes_)
    lane->consult(board, heard, delivery_log_, options_.words);
}

void DeliverySink::leave(claim::SinkBoard& board) {
  for (const auto& lane : lanes_)
    lane->leave(board);
}

/// With one open batch of a whole claim, two would be on their way and not acknowledged.
bool DeliverySink::takes_ahead() {
  if (most_open() == 1) return false;
  // Until a session has begun, nobody knows whether what is claimed can leave.
  if (std::ranges::none_of(batches_.back().clearances, &Clearance::is_given)) return false;
  const auto& before = batches_.front();
  const auto is_done = [&] { return batches_.size() == 1 || before.concluded == before.messages.size(); };
  if (!is_done()) {
    // Asked for each token.
    if (std::ranges::any_of(lanes_, [](const auto& lane) { return lane->dispatcher().has_finished_batch(); }))
      take_answers();
    if (!is_done()) return false;
  }
  return std::ranges::none_of(lanes_, [](const auto& lane) { return lane->dispatcher().is_searching(); });
}

std::optional<std::chrono::seconds> DeliverySink::time_to_admission() const {
  std::optional<std::chrono::seconds> least;
  for (const auto& lane : lanes_) {
    const auto wait = lane->dispatcher().time_to_admission();
    if (!wait) return std::nullopt;
    least = std::min(least.value_or(*wait), *wait);
  }
  return least;
}

TimePoint DeliverySink::claims_from() const {
  if (const auto wait = time_to_admission()) return steady_now() + *wait;
  if (has_several_lanes()) return {};
  // A little earlier, as a claim takes time.
  return lanes_.front()->dispatcher().next_turn() - claim_lead;
}

std::string DeliverySink::unavailability() const {
  std::string text;
  for (const auto& lane : lanes_) {
    const auto own = lane->unavailability();
    if (!own.empty()) text += (text.empty() ? "" : "; ") + own;
  }
  return text;
}

void ClaimPace::began(TimePoint now, bool is_alone) {
  claim_took_.reset();
  // A batch behind two may have been claimed before they were finished.
  if (is_alone && was_alone_ && finished_at_) claim_took_ = now - *finished_at_;
}

void ClaimPace::finished(TimePoint now, std::chrono::nanoseconds busy, int tokens, int whole,
                         bool was_alone) {
  finished_at_ = now;
  was_alone_ = was_alone;
  if (tokens == 0) return;
  if (!was_alone || !claim_took_) {
    overlaps_ = overlaps_ && ++overlapping_ < most_overlapping(in_favour_);
    return;
  }
  overlapping_ = 0;
  // Half as much again: twice as many claims take from the receiver where both share a machine.
  const bool is_slower = 2 * busy * whole / tokens > 3 * (*claim_took_ - tokens * token_cost);
  in_favour_ = std::clamp(in_favour_ + (is_slower ? 1 : -1), -most_votes, most_votes);
  overlaps_ = in_favour_ > 0;
}

}  // namespace mailroom::delivery
