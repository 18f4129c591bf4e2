// Weighs a refusal by what other messages get, and learns rate and connections from those that were too many.

#include "delivery/endpoint.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "base/encoded_text.hpp"
#include "crypto/digest.hpp"
#include "delivery/reply_text.hpp"

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

std::string key_of_sender(const std::string& sender) {
  return "from " + sender;
}

/// Of a refusal: it is shared, and must show nothing of a mail that the words may repeat.
std::string key_of(const std::string& refusal) {
  constexpr std::size_t enough = 8;
  const auto digest = crypto::sha256({refusal});
  return hex_text(std::span(digest).first(enough));
}

/// `450 4.7.1 slow down`
std::string words_of(const Answer& answer) {
  return fmt::format("{} {}", answer.code, recorded_reply(answer.reply, {}));
}

}  // namespace

Endpoint::Endpoint(std::string name, int in_flight, std::optional<config::Rate> rate, std::uint64_t seed)
    : name_(std::move(name)), pace_(seed, rate), at_once_(in_flight), most_(in_flight) {}

Endpoint::Leave Endpoint::leave(WallTime now, const Likeness& likeness) const {
  if (is_probed_) return Leave::later;
  if (let_through(breaker_, now, Milliseconds(0))) return Leave::given;
  if (!is_searching()) return Leave::none;
  return probe_choice_.tries(likeness) ? Leave::given : Leave::aside;
}

Milliseconds Endpoint::set_aside(WallTime now, const Likeness& likeness) {
  constexpr std::chrono::seconds longest{60};
  probe_choice_.looked_at(likeness);
  // As long as it has refused messages: they are looked at ever less often.
  return std::clamp<Milliseconds>(std::chrono::ceil<Milliseconds>(now - breaker_.since),
                                  probe_choice_.shortest_wait(likeness), longest);
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

Departure Endpoint::left(TimePoint now, WallTime wall, Milliseconds probe_time, const Likeness& likeness) {
  ++in_flight_;
  pace_.left(now);
  const auto due = breaker_.next_probe;
  if (!breaker_.is_open()) return {.left = now, .began = wall};
  const auto probed = let_through(breaker_, wall, probe_time);
  if (!probed) probe_choice_.looked_at(likeness);
  is_probed_ = probed.has_value();
  breaker_ = probed.value_or(breaker_);
  return {.left = now, .began = wall, .is_probe = is_probed_, .next_probe = due};
}

void Endpoint::came_back(const Departure& departure) {
  --in_flight_;
  if (departure.is_probe) is_probed_ = false;
}

void Endpoint::came_back_untried(const Departure& departure) {
  came_back(departure);
  if (departure.is_probe && breaker_.is_open()) breaker_.next_probe = departure.next_probe;
}

void Endpoint::weigh(Answer& answer, const RefusedBefore& before, const Departure& departure, TimePoint now,
                     WallTime wall) {
  if (answer.verdict == Verdict::accepted) {
    refusals_.accepted(key_of_sender(before.likeness.sender), departure.began, wall);
    probe_choice_.accepted(before.likeness);
    note_accepted(before.likeness.sender);
    domains_.accepted(before.domain, departure.left, now);
    // Of several mails in a message some were refused.
    if (!answer.refusal.empty()) refusals_.meets_some(key_of(answer.refusal), wall);
    for (const auto& [sender, words] : before.refused_senders)
      refusals_.meets_some(key_of_sender(sender), wall, words);
    return;
  }
  if (answer.varies_with == VariesWith::domain &&
      domains_.refused(before.domain, words_of(answer), departure.left, now, wall)) {
    be_about_some(answer);
    answer.is_about_some = false;  // it is taken another time
  } else if (answer.waits_for_turn) {
    if (!answer.refusal.empty() && refusals_.limited(answer.refusal, wall)) be_about_some(answer);
  } else if (!answer.refusal.empty()) {
    weigh_refusal(answer, before, wall);
  }
}

void Endpoint::note_accepted(const std::string& sender) {
  constexpr std::size_t most = 256;
  if (accepted_senders_.size() >= most) accepted_senders_.clear();
  if (!sender.empty()) accepted_senders_.insert(sender);
}

void Endpoint::weigh_refusal(Answer& answer, const RefusedBefore& before, WallTime wall) {
  const bool is_rejected = answer.verdict == Verdict::rejected;
  const bool is_of_sender = answer.varies_with == VariesWith::sender;
  RefusedMail mail{
      .key = key_of(answer.refusal),
      .by_words = is_rejected ? RefusalSubject::unclear : RefusalSubject::everyone,
      .was_refused = before.was_refused || probe_choice_.are_others_accepted(before.likeness, wall),
      .is_probe = is_probed_};
  probe_choice_.refused(before.likeness, is_of_sender, wall);
  auto about = refusals_.refused(mail, wall);
  // A message of several mails may have no sender of its own.
  if (is_of_sender && !before.likeness.sender.empty()) {
    mail.key = key_of_sender(before.likeness.sender);
    mail.is_of_sender = true;
    mail.why = words_of(answer);
    // What others were told while some were accepted is about this one, too, unless he was accepted himself.
    const bool is_new = !accepted_senders_.contains(before.likeness.sender);
    if (is_new && about == RefusalSubject::recipient) refusals_.meets_some(mail.key, wall);
    about = refusals_.refused(mail, wall);
  }
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
  weigh(answer, before, departure, now, wall);
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
  const bool was_open = breaker_.is_open();
  const bool is_repetition = was_open && !departure.is_probe && !answer.shows_life();
  if (!is_repetition) breaker_ = after_answer(breaker_, answer, departure.began, wall, chance);
  note_search(answer, was_open);
}

void Endpoint::note_search(const Answer& answer, bool was_open) {
  const bool shows_failure = answer.verdict == Verdict::unavailable || answer.about_everyone;
  if (shows_failure) searches_ = answer.varies_with != VariesWith::nothing && !answer.wait;
  searches_ = searches_ && breaker_.is_open();
  if (searches_ && !was_open) probe_choice_.begin();
}

void Endpoint::meets_some(const std::string& refusal, WallTime wall) {
  if (!refusal.empty()) refusals_.meets_some(refusal, wall);
  pace_.forget();
  at_once_.forget();
}

std::optional<std::chrono::seconds> Endpoint::time_to_probe(WallTime wall) const {
  if (is_searching() || let_through(breaker_, wall, Milliseconds(0))) return std::nullopt;
  return mailroom::delivery::time_to_probe(breaker_, wall);
}

Breaker Endpoint::shared(WallTime wall) const {
  auto breaker = breaker_;
  auto learnt = nlohmann::json::object();
  if (auto refusals = refusals_.json(wall); !refusals.empty()) learnt["refusals"] = std::move(refusals);
  if (auto domains = domains_.json(wall); !domains.empty()) learnt["domains"] = std::move(domains);
  if (!learnt.empty()) breaker.learnt = json_text(learnt);
  breaker.seen = seen_;
  return breaker;
}

void Endpoint::share(const Breaker& seen, const Breaker& known, TimePoint now, WallTime wall) {
  const auto own = shared(wall);
  // What has changed meanwhile is shared next time.
  seen_ = own.learnt == seen.learnt ? known.learnt : seen.learnt;
  if (own.learnt == seen.learnt && known.learnt != own.learnt) {
    const auto learnt = known.learnt.empty() ? nlohmann::json::object() : parse_json(known.learnt);
    refusals_.take(learnt.value("refusals", nlohmann::json::array()));
    domains_.take(learnt.value("domains", nlohmann::json::array()), now);
  }
  auto was = seen;
  was.learnt.clear();
  was.seen.clear();
  const bool knows_better = is_answering(now) && !seen.is_open();
  if (breaker_ != was || knows_better) return;
  breaker_ = known;
  breaker_.learnt.clear();
  breaker_.seen.clear();
  searches_ = searches_ && breaker_.is_open();
}

bool Endpoint::is_answering(TimePoint now) const {
  constexpr std::chrono::seconds recent{5};
  return now - last_answered_ < recent;
}

}  // namespace mailroom::delivery
