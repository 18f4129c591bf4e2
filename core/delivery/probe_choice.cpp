// Compares senders and recipients' domains only: what else a refusal is about, the mail at each power of two
// shows.

#include "delivery/probe_choice.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace mailroom::delivery {

void ProbeChoice::refused(const Likeness& likeness, bool is_of_sender, WallTime now) {
  constexpr std::size_t most = 256;
  std::erase_if(refused_, [&](const auto& entry) { return now - entry.second.last > kept; });
  if (refused_.size() >= most && !refused_.contains(likeness))
    refused_.erase(
        std::ranges::min_element(refused_, {}, [](const auto& entry) { return entry.second.last; }));
  auto& known = refused_[likeness];
  known.is_of_sender = known.is_of_sender || is_of_sender;
  known.last = now;
  if (is_of_sender) ++looked_at_[0];
}

void ProbeChoice::accepted(const Likeness& likeness) {
  std::erase_if(refused_, [&](const auto& entry) {
    return entry.first == likeness || (entry.second.is_of_sender && entry.first.sender == likeness.sender);
  });
  for (auto& [other, known] : refused_)
    known.are_others_accepted = true;
}

bool ProbeChoice::are_others_accepted(const Likeness& likeness, WallTime now) const {
  const auto found = refused_.find(likeness);
  return found != refused_.end() && found->second.are_others_accepted && now - found->second.last <= kept;
}

std::size_t ProbeChoice::difference(const Likeness& likeness) const {
  bool is_sender_new = true;
  bool is_kind_new = true;
  for (const auto& [refused, known] : refused_) {
    const bool is_same_sender = refused.sender == likeness.sender;
    if (known.is_of_sender && is_same_sender) return 0;
    is_sender_new = is_sender_new && !is_same_sender;
    is_kind_new = is_kind_new && refused.kind != likeness.kind;
  }
  return 1U + (is_sender_new ? 1U : 0U) + (is_kind_new ? 1U : 0U);
}

bool ProbeChoice::is_over() const {
  return std::accumulate(looked_at_.begin(), looked_at_.end(), 0) >= longest_search;
}

Milliseconds ProbeChoice::shortest_wait(const Likeness& likeness) const {
  // What is like the refused ones must not be in the way of others meanwhile.
  return difference(likeness) < 3 ? std::chrono::seconds(10) : std::chrono::seconds(2);
}

bool ProbeChoice::tries(const Likeness& likeness) const {
  const auto by = difference(likeness);
  const int next = looked_at_.at(by) + 1;
  return (by > 0 && next <= at_once) || std::has_single_bit(static_cast<unsigned>(next));
}

}  // namespace mailroom::delivery
