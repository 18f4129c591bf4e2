// Makes tokens ready as they are emitted, and takes their accounts to the next part of the plan.

#include "simulation/schedule.hpp"

#include <algorithm>

namespace mailroom {
namespace {

template <typename T>
std::vector<T> take_front(std::deque<T>& queue, std::int64_t count) {
  const auto end = queue.begin() + std::min(count, std::ssize(queue));
  std::vector<T> taken(queue.begin(), end);
  queue.erase(queue.begin(), end);
  return taken;
}

}  // namespace

SimulationSchedule::SimulationSchedule(const SimulationRequest& request, TimePoint start)
    : request_(request),
      start_(start),
      step_(request.rate ? 1 : simulation_step),
      planner_(request.seed, request.shares) {}

std::optional<Deal> SimulationSchedule::next_deal() {
  const auto count = std::min(step_, request_.accounts - dealt_);
  if (count == 0) return std::nullopt;
  const auto first = dealt_ + 1;
  Deal deal{
      .first = first, .plans = {}, .due = request_.rate ? due_at(start_, first, *request_.rate) : start_};
  for (; dealt_ < first + count - 1; ++dealt_)
    deal.plans.push_back(planner_.next());
  return deal;
}

std::vector<SimulatedToken> SimulationSchedule::take_ready() {
  return take_front(ready_, step_);
}

SimulationSchedule::Ids SimulationSchedule::take_to_suspend() {
  return take_front(to_suspend_, step_);
}

bool SimulationSchedule::is_over() const {
  return total_.accounts == request_.accounts && waiting_.empty() && ready_.empty();
}

SimulationSchedule::Ids SimulationSchedule::add_accounts(const Deal& deal, const Ids& accounts) {
  total_.accounts += std::ssize(accounts);
  total_.tokens += std::ssize(accounts);
  Ids activating;
  for (std::size_t i = 0; i < accounts.size(); ++i) {
    if (deal.plans[i].activates) {
      plans_.emplace(accounts[i], deal.plans[i]);
      activating.push_back(accounts[i]);
    } else if (deal.plans[i].suspends) {
      to_suspend_.push_back(accounts[i]);
    }
  }
  return activating;
}

void SimulationSchedule::add_tokens(const std::vector<IssuedToken>& issued, bool is_recovery,
                                    std::size_t seen, TimePoint now) {
  if (is_recovery) total_.tokens += std::ssize(issued);
  const std::vector<IdRange> emitted(emitted_.begin() + static_cast<std::ptrdiff_t>(seen), emitted_.end());
  for (const auto& [id, account, seconds_left] : issued) {
    const auto wait = request_.delay.value_or(std::chrono::seconds(seconds_left));
    const SimulatedToken token{.id = id, .account = account, .is_recovery = is_recovery, .until = now + wait};
    if (contains(emitted, id)) {
      ready_.push_back(token);
    } else {
      waiting_.emplace(id, token);
    }
  }
}

SimulationSchedule::Ids SimulationSchedule::finish(const std::vector<SimulatedToken>& tokens,
                                                   const Ids& consumed) {
  Ids recovering;
  for (const auto& token : tokens) {
    const bool is_consumed = std::binary_search(consumed.begin(), consumed.end(), token.id);
    ++(!is_consumed ? total_.expired : token.is_recovery ? total_.recovered : total_.activated);
    const auto plan = plans_.find(token.account);
    if (plan == plans_.end()) continue;
    if (is_consumed && !token.is_recovery && plan->second.recovers) {
      recovering.push_back(token.account);
      continue;
    }
    if (plan->second.suspends) to_suspend_.push_back(token.account);
    plans_.erase(plan);
  }
  return recovering;
}

bool SimulationSchedule::add_emissions(const std::vector<IdRange>& emitted) {
  const auto before = waiting_.size();
  for (const auto& range : emitted) {
    const auto first = waiting_.lower_bound(range.first);
    const auto end = waiting_.lower_bound(range.end);
    for (auto token = first; token != end; ++token)
      ready_.push_back(token->second);
    waiting_.erase(first, end);
  }
  emitted_.insert(emitted_.end(), emitted.begin(), emitted.end());
  return waiting_.size() < before;
}

bool SimulationSchedule::release_due(TimePoint now) {
  // Tokens are issued about in the order of their ids, and all for the same time.
  std::vector<SimulatedToken> due;
  while (!waiting_.empty() && waiting_.begin()->second.until <= now)
    due.push_back(waiting_.extract(waiting_.begin()).mapped());
  if (request_.delay) {
    ready_.insert(ready_.end(), due.begin(), due.end());
  } else {
    finish(due, {});
  }
  return !due.empty();
}

}  // namespace mailroom
