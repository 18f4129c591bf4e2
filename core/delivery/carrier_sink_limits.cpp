// How the sink keeps from an other side that is unavailable, and to the rate that it takes.

#include <algorithm>

#include "base/clock.hpp"
#include "delivery/carrier_sink.hpp"
#include "delivery/line_outcome.hpp"

namespace mailroom {
/// The other side was unavailable: one line shows whether it still is. What was not sent goes back to the
/// queue.
void CarrierSink::submit_probe() {
  if (carrier_->unfinished() > 0) return;
  give_up_old_resends();
  const auto probed = let_through(breaker_, wall_now(), options_.timeout);
  if (probed) {
    if (!submit_next()) return;
    breaker_ = *probed;
    is_probing_ = true;
    return;
  }
  for (const auto id : waiting_)
    give_back(id, breaker_.why);
  waiting_.clear();
}

void CarrierSink::give_up_old_resends() {
  const auto oldest = steady_now() - options_.resend_for;
  std::erase_if(resends_, [&](const auto& resend) {
    if (lines_.at(resend.second).first_submitted > oldest) return false;
    give_back(resend.second, breaker_.why);
    return true;
  });
}

void CarrierSink::note_rate(CarriedLine& line, const Answer& answer) {
  const auto now = steady_now();
  if (answer.verdict == ParcelVerdict::accepted) rate_.took(line.submitted, now);
  if (!answer.throttled) return;
  if (line.refusals.is_news(rate_)) rate_.refused(line.submitted, now);
  line.refusals.add(rate_, now);
  if (!was_limited_) {
    log_.warn("the sink asks for a lower rate, and lines wait for their turn",
              {{"sink", answer.sink}, {"code", answer.code}});
  }
  was_limited_ = true;
}

/// True if the other side refused the line because of its rate, and may take it soon.
bool CarrierSink::waits_for_turn(const CarriedLine& line, const Answer& answer) const {
  return answer.throttled && answer.verdict == ParcelVerdict::deferred && !answer.wait && !is_stopped_ &&
         !line.refusals.are_many() && steady_now() - line.first_submitted < Pace::longest_wait;
}

void CarrierSink::note_state(const Answer& answer) {
  const bool is_unavailable = answer.verdict == ParcelVerdict::unavailable;
  Delivery delivery;
  delivery.outcome = is_unavailable ? MailOutcome::unavailable : MailOutcome::deferred;
  // A line without an answer says nothing of the other side.
  const bool has_answer = !is_unavailable && answer.verdict != ParcelVerdict::unknown;
  delivery.code = has_answer ? 1 : 0;
  delivery.reply = shown_reply(answer.reply, {});
  // Those that were in flight with the first one fail for the same reason.
  const bool is_repetition = is_unavailable && breaker_.is_open() && !is_probing_;
  is_probing_ = false;
  if (!is_repetition) breaker_ = after_delivery(breaker_, delivery, submitted_at_, wall_now(), chance());
  if (is_unavailable && !is_unavailable_) {
    log_.warn("the sink is unavailable, its tokens wait in the queue",
              {{"sink", answer.sink}, {"reason", delivery.reply}});
  } else if (has_answer && is_unavailable_) {
    log_.info("the sink is available again", {{"sink", answer.sink}});
  }
  is_unavailable_ = is_unavailable || (is_unavailable_ && !has_answer);
}

std::optional<std::chrono::seconds> CarrierSink::time_to_admission() const {
  const auto now = wall_now();
  return let_through(breaker_, now, options_.timeout) ? std::nullopt : time_to_probe(breaker_, now);
}

bool CarrierSink::is_ready() const {
  const std::lock_guard lock(mutex_);
  return !time_to_admission();
}

std::string CarrierSink::unavailability() const {
  const std::lock_guard lock(mutex_);
  return shared_.unavailability({breaker_});
}

TimePoint CarrierSink::claims_from() const {
  const std::lock_guard lock(mutex_);
  const auto wait = time_to_admission();
  return wait ? steady_now() + *wait : rate_.next();
}

void CarrierSink::consult(SinkBoard& board, bool heard) {
  const std::lock_guard lock(mutex_);
  if (const auto known = shared_.exchange(board, {breaker_}, heard)) breaker_ = known->front();
}

}  // namespace mailroom
