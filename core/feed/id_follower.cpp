#include "feed/id_follower.hpp"

#include <algorithm>
#include <map>

namespace mailroom {
namespace {

/// Before PostgreSQL knows a prepared transaction's session any more (after a restart, or as soon as it is
/// prepared), it goes by another id than the one it was first seen with.
bool may_be_renamed(const std::string& holder) {
  return holder.compare(0, 3, "-1/") == 0;
}

SequenceHolders still_pending(const SequenceHolders& pending, const SequenceHolders& holders) {
  SequenceHolders left;
  for (const auto& holder : holders) {
    if (pending.count(holder) > 0 || may_be_renamed(holder)) left.insert(holder);
  }
  return left;
}

/// What is left of `range` without `ids`, which ascend, appended to `rest`.
void append_without(std::vector<IdRun>& rest, IdRun range, const std::vector<std::int64_t>& ids) {
  auto next = range.first;
  for (auto id = std::lower_bound(ids.begin(), ids.end(), range.first); id != ids.end() && *id <= range.last;
       ++id) {
    if (*id > next) rest.push_back({next, *id - 1});
    next = *id + 1;
  }
  if (next <= range.last) rest.push_back({next, range.last});
}

std::vector<IdRun> without(const std::vector<IdRun>& ranges, const std::vector<std::int64_t>& ids) {
  std::vector<IdRun> rest;
  for (const auto& range : ranges)
    append_without(rest, range, ids);
  return rest;
}

void sort(std::vector<IdRun>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

}  // namespace

void IdFollower::start(std::int64_t newest, const std::vector<IdRun>& gaps) {
  newest_ = newest;
  groups_.clear();
  add_fresh(gaps);
}

void IdFollower::set_holders(const SequenceHolders& holders) {
  for (auto& group : groups_) {
    auto pending = group.pending ? still_pending(*group.pending, holders) : holders;
    if (group.pending != pending) group.is_due = true;
    group.pending = std::move(pending);
  }
}

bool IdFollower::has_due_gaps() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const auto& group) { return group.is_due; });
}

std::vector<IdRun> IdFollower::to_read(std::int64_t top) const {
  std::vector<IdRun> ranges;
  for (const auto& group : groups_) {
    if (group.is_due) ranges.insert(ranges.end(), group.gaps.begin(), group.gaps.end());
  }
  sort(ranges);
  if (top > newest_) ranges.push_back({newest_ + 1, top});
  return ranges;
}

void IdFollower::saw(const std::vector<std::int64_t>& ids) {
  for (auto& group : groups_) {
    if (!group.is_due) continue;
    group.is_due = false;
    group.gaps = group.pending->empty() ? std::vector<IdRun>() : without(group.gaps, ids);
  }
  groups_.erase(std::remove_if(groups_.begin(), groups_.end(), [](const auto& g) { return g.gaps.empty(); }),
                groups_.end());
  if (!ids.empty() && ids.back() > newest_) {
    add_fresh(without({{newest_ + 1, ids.back()}}, ids));
    newest_ = ids.back();
  }
  merge_groups();
}

std::vector<IdRun> IdFollower::gaps() const {
  std::vector<IdRun> all;
  for (const auto& group : groups_)
    all.insert(all.end(), group.gaps.begin(), group.gaps.end());
  sort(all);
  return all;
}

void IdFollower::add_fresh(std::vector<IdRun> gaps) {
  if (gaps.empty()) return;
  groups_.push_back({std::move(gaps), std::nullopt, false});
}

/// Thousands of rollbacks behind one open transaction then cost one comparison a look.
void IdFollower::merge_groups() {
  if (groups_.size() < 2) return;
  std::map<std::optional<SequenceHolders>, std::vector<IdRun>> merged;
  for (auto& group : groups_) {
    auto& gaps = merged[std::move(group.pending)];
    gaps.insert(gaps.end(), group.gaps.begin(), group.gaps.end());
  }
  groups_.clear();
  for (auto& [pending, gaps] : merged) {
    sort(gaps);
    groups_.push_back({std::move(gaps), pending, false});
  }
}

}  // namespace mailroom
