#include "feed/consumption_follower.hpp"

#include <algorithm>

namespace mailroom {
namespace {

std::int64_t oldest_start(const ServerLook& look, std::int64_t at_the_latest) {
  auto oldest = at_the_latest;
  for (const auto& [name, started] : look.running)
    oldest = std::min(oldest, started);
  return oldest;
}

}  // namespace

void ConsumptionFollower::start(const ServerLook& look) {
  now_ = previous_now_ = look.now;
  running_ = look.running;
  some_are_hidden_ = look.some_are_hidden;
  last_wide_read_ = look.now;
  oldest_ = std::min(oldest_start(look, nothing), look.now - std::max(slack_, hidden_past)) - slack_;
  owed_ = oldest_;
  blocks_.clear();
}

void ConsumptionFollower::observe(const ServerLook& look) {
  for (const auto& [name, started] : running_) {
    if (look.running.count(name) == 0) owed_ = std::min(owed_, started - slack_);
  }
  if (look.some_are_hidden && look.now - last_wide_read_ >= hidden_interval) {
    owed_ = std::min(owed_, look.now - hidden_past);
    last_wide_read_ = look.now;
  }
  some_are_hidden_ = look.some_are_hidden;
  running_ = look.running;
  now_ = look.now;
}

bool ConsumptionFollower::is_new(std::int64_t token) const {
  const auto block = blocks_.find(token / block_size);
  return block == blocks_.end() || (block->second.told >> (token % block_size) & 1) == 0;
}

bool ConsumptionFollower::first_time(std::int64_t token, std::int64_t consumed_at) {
  if (!is_new(token)) return false;
  auto& block = blocks_[token / block_size];
  block.told |= std::uint64_t{1} << (token % block_size);
  block.newest = std::max(block.newest, consumed_at);
  return true;
}

void ConsumptionFollower::read() {
  previous_now_ = now_;
  owed_ = nothing;
  forget_old();
}

void ConsumptionFollower::forget_old() {
  auto keep_from = now_ - slack_;
  if (some_are_hidden_) keep_from = std::min(keep_from, now_ - hidden_past - hidden_interval);
  for (const auto& [name, started] : running_)
    keep_from = std::min(keep_from, started - slack_);
  for (auto block = blocks_.begin(); block != blocks_.end();)
    block = block->second.newest < keep_from ? blocks_.erase(block) : std::next(block);
}

}  // namespace mailroom
