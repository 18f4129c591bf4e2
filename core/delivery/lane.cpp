// Turns messages away before they wait in a batch whose other messages could be done. Which lane a message
// takes, its profile decides (config/relay_path); when a relay that failed is tried again, the breaker.

#include "delivery/lane.hpp"

#include <algorithm>
#include <utility>

namespace mailroom::delivery {
namespace {

constexpr std::chrono::milliseconds slow_answer{1000};
constexpr std::chrono::seconds session_memory{5};
constexpr std::chrono::milliseconds longest_turn{1000};  ///< how long a batch waits for the turn of a message
constexpr std::chrono::milliseconds usual_gap{20};

}  // namespace

Lane::Lane(std::unique_ptr<Carrier> carrier, const Dispatcher::Options& options)
    : shared_(carrier->endpoints(), options.probe_time),
      in_flight_(options.in_flight),
      dispatcher_(std::move(carrier), options),
      was_open_(shared_.names().size()) {}

bool Lane::is_among(const std::vector<std::string>& sinks) const {
  return std::ranges::any_of(names(),
                             [&](const auto& name) { return std::ranges::find(sinks, name) != sinks.end(); });
}

bool Lane::is_in_session(TimePoint now) const {
  if (!begun_at_ || dispatcher_.time_to_admission()) return false;
  return now - *begun_at_ < session_memory || dispatcher_.is_answering();
}

std::optional<Answer> Lane::turn_away(TimePoint now) {
  Answer answer{.sink = shared_.names().front(), .ended = wall_now()};
  if (const auto wait = dispatcher_.time_to_admission()) {
    answer.reply = dispatcher_.breakers().front().why;
    answer.wait = return_times_.next(now, *wait, usual_gap);
    return answer;
  }
  const auto turn = dispatcher_.next_turn() - now;
  const bool is_full = is_slow_ && dispatcher_.unfinished() >= static_cast<std::size_t>(in_flight_);
  if (turn <= longest_turn && !is_full) return std::nullopt;
  answer.verdict = Verdict::deferred;
  answer.reply = is_full ? "the receiver is busy with the messages before it"
                         : "waits for its turn, as the rate is limited";
  answer.is_excused = answer.waits_for_turn = true;
  answer.wait = return_times_.next(now, std::max<std::chrono::nanoseconds>(turn, slow_answer),
                                   std::max<std::chrono::nanoseconds>(dispatcher_.gap(), usual_gap));
  return answer;
}

void Lane::note(const Answer& answer) {
  if (answer.took.count() > 0) is_slow_ = answer.took > slow_answer;
}

void Lane::consult(claim::SinkBoard& board, bool heard, DeliveryLog& log, const DeliveryWords& words) {
  const auto own = dispatcher_.breakers();
  const auto known = shared_.exchange(board, own, heard);
  if (!known) return;
  dispatcher_.set_breakers(own, *known);
  note_states(log, words);
}

void Lane::note_states(DeliveryLog& log, const DeliveryWords& words) {
  const auto& names = shared_.names();
  const auto breakers = dispatcher_.breakers();
  const auto now = steady_now();
  const bool any_works = std::ranges::any_of(breakers, [](const auto& each) { return !each.is_open(); });
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (breakers[i].is_open()) {
      log.unavailable(words, names[i], breakers[i].why, any_works, now);
    } else if (was_open_[i]) {
      log.available(words, names[i], now);
    }
    was_open_[i] = breakers[i].is_open();
  }
}

}  // namespace mailroom::delivery
