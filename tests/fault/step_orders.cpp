// Which orders of the steps of some sessions are worth playing. Knows nothing of a database.

#include "fault/step_orders.hpp"

#include <algorithm>
#include <utility>

namespace mailroom::test {
namespace {

void add_uses(Uses& sum, const Uses& more) {
  for (const auto& [thing, use] : more) {
    const auto [place, is_new] = sum.emplace(thing, use);
    if (!is_new && place->second != use) place->second = Use::writes;
  }
}

}  // namespace

bool commute(const Uses& one, const Uses& other) {
  return std::none_of(one.begin(), one.end(), [&](const auto& each) {
    const auto found = other.find(each.first);
    return found != other.end() && (each.second == Use::writes || each.second != found->second);
  });
}

std::optional<std::size_t> StepOrders::next(const std::vector<Standing>& standings) {
  if (depth_ == nodes_.size()) {
    auto node = make_node(standings);
    if (!choose(node)) return std::nullopt;
    ++states_;
    nodes_.push_back(std::move(node));
  }
  return nodes_[depth_++].chosen;
}

bool StepOrders::advance() {
  depth_ = 0;
  for (; !nodes_.empty(); nodes_.pop_back()) {
    auto& node = nodes_.back();
    node.asleep.insert(node.chosen);
    if (choose(node)) {
      ++states_;
      return true;
    }
  }
  return false;
}

bool StepOrders::choose(Node& node) {
  const auto awake =
      std::ranges::find_if(node.choice, [&](auto session) { return !node.asleep.contains(session); });
  if (awake == node.choice.end()) return false;
  node.chosen = *awake;
  return true;
}

StepOrders::Node StepOrders::make_node(const std::vector<Standing>& standings) const {
  Node node{.taken = std::vector<std::size_t>(sessions_.size()), .waiting = {}, .choice = {}, .asleep = {}};
  if (!nodes_.empty()) {
    const auto& before = nodes_.back();
    node.taken = before.taken;
    // What waits may go on with the step.
    auto uses = next_uses(before, before.chosen);
    add_uses(uses, before.waiting);
    ++node.taken[before.chosen];
    for (const auto session : before.asleep) {
      if (commute(next_uses(before, session), uses)) node.asleep.insert(session);
    }
  }
  Sessions ready;
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    if (standings[i].waits) add_uses(node.waiting, sessions_[i][node.taken[i] - 1]);
    if (standings[i].can_go && is_left(node, i)) ready.insert(i);
  }
  node.choice = node.waiting.empty() ? persistent(node, ready) : ready;
  return node;
}

StepOrders::Sessions StepOrders::persistent(const Node& node, const Sessions& ready) const {
  auto smallest = ready;
  for (const auto seed : ready) {
    Sessions set{seed};
    std::vector<std::size_t> open{seed};
    while (!open.empty()) {
      const auto& uses = next_uses(node, open.back());
      open.pop_back();
      for (const auto other : ready) {
        if (!set.contains(other) && may_disturb(node, other, uses)) {
          set.insert(other);
          open.push_back(other);
        }
      }
    }
    if (set.size() < smallest.size()) smallest = set;
  }
  return smallest;
}

/// True if a step that the session has left does not commute.
bool StepOrders::may_disturb(const Node& node, std::size_t session, const Uses& uses) const {
  const auto& steps = sessions_[session];
  return std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(node.taken[session]), steps.end(),
                     [&](const auto& step) { return !commute(step, uses); });
}

}  // namespace mailroom::test
