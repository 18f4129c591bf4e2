#include "feed/event_feed.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "feed/event_lookup.hpp"

namespace mailroom {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::int64_t recent = 5;  ///< seconds that each poll reads
constexpr std::chrono::seconds window_interval{2};
constexpr int window_share = 10;  ///< reading the window takes at most a tenth of the time
constexpr std::size_t events_per_lookup = 8000;

// The times of tokens are rounded to seconds.
constexpr std::int64_t rounding_us = 2'000'000;

}  // namespace

EventFeed::EventFeed(HistoryRequest history, EventFilter filter, std::chrono::seconds window, Log& log)
    : history_(history), filter_(std::move(filter)), window_(window.count()), log_(log) {}

void EventFeed::start(FeedSession& session, bool follow) {
  if (follow) {
    identity_ = session.identity();
    last_ = session.moment();
    since_ = last_.now - window_;
  }
  session.connection().transact([&](pqxx::work& transaction) {
    const auto past = read_history(transaction, history_, filter_);
    pending_.assign(past.begin(), past.end());
    if (follow) shown_ = read_from(transaction, since_);
  });
  next_window_ = Steady::now() + window_interval;
}

void EventFeed::resume(FeedSession& session) {
  if (session.identity() == identity_) return;
  log_.warn("connected to a different database, following it from now on");
  history_ = HistoryRequest();
  history_.last = 0;
  start(session, true);
}

bool EventFeed::is_window_due() const {
  return window_ <= recent || Steady::now() >= next_window_;
}

std::vector<EventKey> EventFeed::read_from(pqxx::work& transaction, std::int64_t second) const {
  // The state of a token may change after it was shown, so look_up() filters by state.
  auto filter = filter_;
  filter.states.clear();
  HistoryRequest request;
  request.since = second;
  return read_history(transaction, request, filter);
}

void EventFeed::poll(FeedSession& session) {
  auto moment = session.moment();
  const bool due = is_window_due();
  if (moment.snapshot == last_.snapshot && (read_window_ || !due)) return;
  since_ = std::max(since_, moment.now - window_);
  const auto from = due ? since_ : std::max(since_, std::min(last_.now, moment.now) - recent);

  const auto started = Steady::now();
  std::vector<EventKey> found;
  session.connection().transact([&](pqxx::work& transaction) { found = read_from(transaction, from); });
  const auto ended = Steady::now();
  if (due)
    next_window_ = ended + std::max<Steady::duration>(window_interval, (ended - started) * window_share);
  show_new(found);
  last_ = std::move(moment);
  read_window_ = due;
}

void EventFeed::show_new(const std::vector<EventKey>& found) {
  std::vector<EventKey> fresh;
  std::set_difference(found.begin(), found.end(), shown_.begin(), shown_.end(), std::back_inserter(fresh));
  std::copy_if(fresh.begin(), fresh.end(), std::back_inserter(pending_),
               [&](const auto& event) { return filter_.may_want(event.kind); });
  const auto middle = static_cast<std::ptrdiff_t>(shown_.size());
  shown_.insert(shown_.end(), fresh.begin(), fresh.end());
  std::inplace_merge(shown_.begin(), shown_.begin() + middle, shown_.end());
  const auto past = std::find_if(shown_.begin(), shown_.end(), [&](const auto& event) {
    return event.order_us >= to_microseconds(since_) - rounding_us;
  });
  shown_.erase(shown_.begin(), past);
}

std::vector<Event> EventFeed::next(FeedSession& session) {
  const auto end =
      pending_.begin() + static_cast<std::ptrdiff_t>(std::min(pending_.size(), events_per_lookup));
  auto events = look_up(session.connection(), {pending_.begin(), end}, filter_);
  pending_.erase(pending_.begin(), end);
  return events;
}

}  // namespace mailroom
