// What becomes of a carrier's answers: which message is tried elsewhere, later or again, and how the sink
// gets the final ones. A descriptor tells it, since it waits for a stop request too.

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "delivery/dispatcher.hpp"
#include "delivery/reply_text.hpp"

namespace mailroom::delivery {
namespace {

constexpr Milliseconds pause_after_many{3000};  ///< refusals of a message

/// Of several mails, of which some were accepted.
std::map<std::string, std::string> refused_senders_of(const Message& message, const Answer& answer) {
  std::map<std::string, std::string> senders;
  if (answer.varies_with != VariesWith::sender) return senders;
  for (const auto& token : answer.tokens) {
    const auto mail = std::ranges::find(message.mails, token.token, &PackedMail::token);
    if (!token.is_about_some || mail == message.mails.end()) continue;
    senders[lower_case(mail->envelope.author)] =
        fmt::format("{} {}", token.code.value_or(0), recorded_reply(token.reason, {}));
  }
  return senders;
}

bool is_failure_of_endpoint(const Answer& answer) {
  return answer.verdict == Verdict::unavailable || answer.about_everyone;
}

}  // namespace

void Dispatcher::take_answers() {
  std::vector<std::int64_t> untried;
  endpoints_.answers_came();
  for (auto& answer : carrier_->take()) {
    const auto found = pending_.find(answer.id);
    if (found == pending_.end()) continue;
    found->second.loaded = {};
    const bool is_withheld = is_refused(found->second);
    found->second.clearance = nullptr;
    if (answer.was_tried) {
      record(std::move(answer));
      continue;
    }
    endpoints_[found->second.message.endpoint].came_back_untried(found->second.departure);
    --found->second.tries;
    if (is_withheld) {
      give_up(answer.id, "it must not leave");
    } else {
      untried.push_back(answer.id);
    }
  }
  waiting_.insert(waiting_.begin(), untried.begin(), untried.end());
}

void Dispatcher::record(Answer answer) {
  auto& pending = pending_.at(answer.id);
  const auto place = pending.message.endpoint;
  const auto now = steady_now();
  auto departure = pending.departure;
  if (answer.took.count() > 0 && answer.ended != WallTime{}) {
    // It may have waited at the carrier.
    departure.left = std::max(now - answer.took, departure.left);
    departure.began =
        std::max(answer.ended - std::chrono::ceil<WallTime::duration>(answer.took), departure.began);
  }
  const RefusedBefore before{.likeness = pending.likeness,
                             .domain = domain_of(pending.message.envelope),
                             .was_refused = pending.message.was_refused,
                             .refusals = pending.refusals,
                             .refused_senders = refused_senders_of(pending.message, answer)};
  endpoints_[place].learn(answer, before, departure, now, wall_now(), chance());
  if (answer.throttled || answer.crowded) connections_[place] = 0;
  tell_connections(place, now);
  if (is_tried_elsewhere(pending, answer)) return waiting_.push_front(answer.id);
  if (waits_again(pending, answer, now)) {
    results_.note({.answer = answer, .is_final = false, .at = now});
    return waiting_.push_back(answer.id);
  }
  if (!is_sent_again(pending, answer, now)) conclude(answer.id, std::move(answer));
}

bool Dispatcher::is_tried_elsewhere(Pending& pending, const Answer& answer) {
  if (!is_failure_of_endpoint(answer) || pending.may_be_taken || is_cancelling_) return false;
  pending.first = pending.message.endpoint + 1;
  pending.last = answer;
  const auto leave = choose(pending).leave;
  return leave == Endpoint::Leave::given || leave == Endpoint::Leave::later;
}

bool Dispatcher::waits_again(Pending& pending, Answer& answer, TimePoint now) {
  if (!answer.waits_for_turn) return false;
  if (!answer.before_message) pending.refusals.add(endpoints_[pending.message.endpoint].pace(), now);
  const bool is_over = is_cancelling_ || answer.wait || now >= pending.until;
  if (!is_over && !pending.refusals.are_many() && !pending.refusals.are_about_mail()) return true;
  const bool is_about_message = pending.refusals.are_about_mail();
  if (is_about_message) {
    // What was learnt from such answers is wrong.
    endpoints_[pending.message.endpoint].meets_some(answer.refusal, wall_now());
  } else {
    refused_.keep(pending.message.envelope.to, pending.refusals);
  }
  answer.is_excused = answer.waits_for_turn = !is_about_message;
  if (!is_over && !is_about_message) answer.wait = pause_after_many;
  return false;
}

bool Dispatcher::is_sent_again(Pending& pending, const Answer& answer, TimePoint now) {
  pending.may_be_taken = pending.may_be_taken || answer.verdict == Verdict::unknown;
  const bool is_final = answer.verdict == Verdict::accepted || answer.verdict == Verdict::rejected;
  if (!pending.may_be_taken || is_final || is_cancelling_) return false;
  const auto next =
      now + std::max(resend_delay(pending.tries, chance()), answer.wait.value_or(Milliseconds(0)));
  if (next - pending.first_left >= options_.resend_for) return false;
  resends_.emplace(next, answer.id);
  return true;
}

void Dispatcher::conclude(std::int64_t id, Answer answer) {
  const auto pending = std::move(pending_.extract(id).mapped());
  const bool is_open = answer.verdict == Verdict::unavailable || answer.verdict == Verdict::deferred;
  if (pending.may_be_taken && is_open) answer.verdict = Verdict::unknown;
  if (is_failure_of_endpoint(answer) && !answer.wait) answer.wait = admission();
  answer.id = id;
  results_.conclude(pending.message.batch,
                    {.answer = std::move(answer), .may_be_taken = pending.may_be_taken, .at = steady_now()});
}

void DispatchResults::conclude(std::int64_t batch, Dispatched dispatched) {
  done_.push_back(std::move(dispatched));
  const auto found = unfinished_.find(batch);
  if (--found->second > 0) return;
  unfinished_.erase(found);
  if (batch != filling_) ready_.signal();
  if (unfinished_.empty()) finished_.notify_all();
}

std::optional<std::size_t> DispatchResults::fewest_unfinished() const {
  std::optional<std::size_t> fewest;
  for (const auto& [batch, count] : unfinished_) {
    if (batch != filling_) fewest = std::min(fewest.value_or(count), count);
  }
  return fewest;
}

std::vector<Dispatched> DispatchResults::take() {
  ready_.clear();
  return std::exchange(done_, {});
}

bool DispatchResults::wait(std::unique_lock<std::mutex>& lock, TimePoint until) {
  return finished_.wait_until(lock, until, [this] { return unfinished_.empty(); });
}

}  // namespace mailroom::delivery
