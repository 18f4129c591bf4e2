#include "feed/event_feed.hpp"

#include <algorithm>
#include <utility>

#include "feed/event_lookup.hpp"

namespace mailroom {
namespace {

constexpr std::array<Followed, 3> all_followed{Followed::tokens, Followed::batches, Followed::operations};
constexpr std::int64_t gaps_searched = 1'000'000;  ///< ids below the newest, at the start
constexpr std::int64_t farthest_ahead = 3600;      ///< seconds that a consumed_at may be ahead
constexpr std::size_t looked_up_at_once = 8000;

std::string_view name_of(Followed followed) {
  constexpr std::array<std::string_view, 3> names{"tokens", "batches", "operations"};
  return names.at(index_of(followed));
}

}  // namespace

/// What one snapshot showed that is new, to be adopted once all of it has been read.
struct EventFeed::Findings {
  std::array<std::vector<std::int64_t>, 3> ids;
  std::vector<EventKey> events;
  std::vector<BatchRow> batches;
  std::vector<std::int64_t> vanished_batches;
  std::vector<std::pair<std::int64_t, std::int64_t>> consumed;  ///< token and consumed_at
  std::string xmin;
};

EventFeed::EventFeed(HistoryRequest history, EventFilter filter, Log& log, std::int64_t slack)
    : history_(history), filter_(std::move(filter)), log_(log), slack_(slack), consumption_(slack) {}

void EventFeed::start(FeedSession& session, bool follow) {
  if (!follow) {
    session.in_snapshot([&](const FeedSnapshot& snapshot) {
      const auto events = read_history(snapshot, history_, filter_);
      pending_.assign(events.begin(), events.end());
    });
    return;
  }
  identity_ = session.identity();
  // In this order: an id up to `before` is visible in the snapshot, or its transaction is among the holders,
  // or it never will be visible.
  const auto before = session.sequence_positions();
  const auto holders = session.sequence_holders();
  const auto look = session.look(slack_ / 2);
  consumption_.start(look);
  server_now_ = look.now;
  last_look_.clear();
  session.in_snapshot([&](const FeedSnapshot& snapshot) {
    find_place(before, holders, snapshot);
    const auto events = read_history(snapshot, history_, filter_);
    pending_.assign(events.begin(), events.end());
  });
}

void EventFeed::find_place(const SequencePositions& before, const std::array<SequenceHolders, 3>& holders,
                           const FeedSnapshot& snapshot) {
  for (const auto followed : all_followed) {
    const auto i = index_of(followed);
    const auto newest = snapshot.newest_id(followed);
    const auto after =
        holders.at(i).empty() ? before.at(i) : std::max<std::int64_t>(0, newest - gaps_searched);
    ids_.at(i).start(newest, snapshot.gaps_between(followed, after, newest));
  }
  batches_.start(snapshot.open_batches());
  snapshot.consumed_between(
      consumption_.floor(), server_now_ + farthest_ahead, snapshot.xmin(),
      [&](std::int64_t token, std::int64_t consumed_at) { consumption_.first_time(token, consumed_at); });
  consumption_.read();
  xmin_ = snapshot.xmin();
}

void EventFeed::resume(FeedSession& session) {
  if (session.identity() == identity_) return;
  log_.warn("this is another database than before: following it from its present on");
  history_ = HistoryRequest();
  history_.last = 0;
  start(session, true);
}

void EventFeed::poll(FeedSession& session) {
  const auto look = session.look(slack_ / 2);
  consumption_.observe(look);
  server_now_ = look.now;
  const auto any = [&](auto&& test) { return std::any_of(ids_.begin(), ids_.end(), test); };
  if (any([](const auto& ids) { return ids.has_gaps(); })) {
    const auto holders = session.sequence_holders();
    for (std::size_t i = 0; i < ids_.size(); ++i)
      ids_.at(i).set_holders(holders.at(i));
  }
  const bool nothing_ended = look.snapshot == last_look_;
  if (nothing_ended && !consumption_.owes_a_read() &&
      !any([](const auto& ids) { return ids.has_due_gaps(); })) {
    return;
  }
  Findings findings;
  session.in_snapshot([&](const FeedSnapshot& snapshot) {
    look_for_reset(snapshot);
    findings = read(snapshot);
  });
  adopt(findings);
  last_look_ = look.snapshot;
}

void EventFeed::look_for_reset(const FeedSnapshot& snapshot) {
  for (const auto followed : all_followed) {
    const auto i = index_of(followed);
    const auto top = snapshot.tops().at(i);
    if (top >= ids_.at(i).newest()) continue;
    log_.warn("the sequence has been set back: following it from where it is now",
              {{"of", name_of(followed)}, {"from", ids_.at(i).newest()}, {"to", top}});
    ids_.at(i).start(snapshot.newest_id(followed), {});
  }
}

EventFeed::Findings EventFeed::read(const FeedSnapshot& snapshot) const {
  Findings found;
  const auto ranges = [&](Followed followed) {
    return ids_.at(index_of(followed)).to_read(snapshot.tops().at(index_of(followed)));
  };
  const auto note = [&](Followed followed) {
    return [&found, followed](std::int64_t id, const std::optional<EventKey>& event) {
      found.ids.at(index_of(followed)).push_back(id);
      if (event) found.events.push_back(*event);
    };
  };
  snapshot.tokens_in(ranges(Followed::tokens), note(Followed::tokens));
  snapshot.operations_in(ranges(Followed::operations), note(Followed::operations));
  found.batches = snapshot.batches_in(ranges(Followed::batches));
  for (const auto& row : found.batches)
    found.ids.at(index_of(Followed::batches)).push_back(row.id);

  const auto open = batches_.open_ids();
  const auto still_there = snapshot.batches(open);
  std::vector<std::int64_t> seen;
  for (const auto& row : still_there)
    seen.push_back(row.id);
  std::set_difference(open.begin(), open.end(), seen.begin(), seen.end(),
                      std::back_inserter(found.vanished_batches));
  found.batches.insert(found.batches.end(), still_there.begin(), still_there.end());

  snapshot.consumed_between(consumption_.floor(), server_now_ + farthest_ahead, xmin_,
                            [&](std::int64_t token, std::int64_t consumed_at) {
                              if (consumption_.is_new(token)) found.consumed.emplace_back(token, consumed_at);
                            });
  found.xmin = snapshot.xmin();
  return found;
}

void EventFeed::adopt(const Findings& findings) {
  auto events = findings.events;
  for (std::size_t i = 0; i < ids_.size(); ++i)
    ids_.at(i).saw(findings.ids.at(i));
  for (const auto id : findings.vanished_batches)
    batches_.vanished(id);
  const auto of_batches = batches_.saw(findings.batches);
  events.insert(events.end(), of_batches.begin(), of_batches.end());
  for (const auto& [token, consumed_at] : findings.consumed) {
    if (!consumption_.first_time(token, consumed_at)) continue;
    events.push_back({consumption_order(consumed_at), token, EventWord::consumed});
  }
  consumption_.read();
  xmin_ = findings.xmin;

  std::sort(events.begin(), events.end());
  std::copy_if(events.begin(), events.end(), std::back_inserter(pending_),
               [&](const auto& event) { return filter_.may_want(event.word); });
}

std::vector<Event> EventFeed::next(FeedSession& session) {
  const auto end =
      pending_.begin() + static_cast<std::ptrdiff_t>(std::min(pending_.size(), looked_up_at_once));
  auto events = look_up(session.connection(), {pending_.begin(), end}, filter_);
  pending_.erase(pending_.begin(), end);
  return events;
}

std::size_t EventFeed::open_gaps() const {
  std::size_t count = 0;
  for (const auto& ids : ids_)
    count += ids.gaps().size();
  return count;
}

}  // namespace mailroom
