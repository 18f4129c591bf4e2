#include "simulation/simulation_worker.hpp"

#include <algorithm>
#include <unordered_map>

namespace mailroom {
namespace {

constexpr std::size_t max_to_suspend = 100'000;

template <typename Work>
auto timed(LatencyHistogram& latency, Work&& work) {
  const auto start = now_of_play();
  auto result = work();
  latency.add(std::chrono::duration_cast<std::chrono::microseconds>(now_of_play() - start));
  return result;
}

}  // namespace

TimePoint now_of_play() {
  return std::chrono::steady_clock::now();
}

SimulationWorker::SimulationWorker(LastingConnection& connection, const SimulationRequest& request,
                                   AccountDealer& dealer, PlayState& state, std::size_t max_waiting)
    : request_(request),
      dealer_(dealer),
      state_(state),
      max_waiting_(max_waiting),
      step_(request.rate ? 1 : simulation_step),
      rows_(connection, request.seed) {}

void SimulationWorker::run() {
  while (!state_.stopping) {
    if (!deal_) deal_ = dealer_.take();
    const auto now = now_of_play();
    take_arrivals(now);
    // Alternates, so that neither a fast collector nor a high rate starves the other side.
    const bool created = create_if_due(now);
    const bool consumed = consume_some();
    if (created || consumed) continue;
    if (!deal_ && waiting_.size() == 0) break;
    sleep();
  }
  if (!state_.stopping) suspend(to_suspend_);
}

void SimulationWorker::deliver(const std::vector<IdRange>& emitted) {
  const std::lock_guard lock(mutex_);
  inbox_.insert(inbox_.end(), emitted.begin(), emitted.end());
  news_.notify_one();
}

void SimulationWorker::wake() {
  const std::lock_guard lock(mutex_);
  news_.notify_one();
}

void SimulationWorker::take_arrivals(TimePoint now) {
  // A token is added to waiting_ before the inbox is next read, so its emission cannot be missed.
  std::vector<IdRange> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(inbox_);
  }
  for (const auto& range : arrived) {
    const auto tokens = waiting_.take(range);
    release(tokens);
    ready_.insert(ready_.end(), tokens.begin(), tokens.end());
  }
  const auto past = waiting_.take_until(now);
  release(past);
  if (request_.delay) {
    ready_.insert(ready_.end(), past.begin(), past.end());
  } else {
    go_on_after(past, {});
  }
}

bool SimulationWorker::create_if_due(TimePoint now) {
  if (!deal_ || deal_->due > now || waiting_.size() > max_waiting_) return false;
  const auto deal = std::move(*deal_);
  deal_.reset();
  const auto count = static_cast<std::int64_t>(deal.plans.size());
  const auto accounts =
      timed(tally_.latency, [&] { return rows_.create(deal.first, deal.first + count - 1); });
  tally_.accounts += count;
  tally_.tokens += count;
  tally_.last_creation = now_of_play();
  state_.accounts += count;
  await_activation(accounts, deal.plans);
  if (to_suspend_.size() >= max_to_suspend) {
    suspend(to_suspend_);
    to_suspend_.clear();
  }
  return true;
}

void SimulationWorker::await_activation(const std::vector<std::int64_t>& accounts,
                                        const std::vector<AccountPlan>& plans) {
  std::unordered_map<std::int64_t, AccountPlan> activating;
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < accounts.size(); ++i) {
    if (plans[i].activates) {
      activating.emplace(accounts[i], plans[i]);
      ids.push_back(accounts[i]);
    } else if (plans[i].suspends) {
      to_suspend_.push_back(accounts[i]);
    }
  }
  if (ids.empty()) return;
  for (const auto& token : rows_.activation_tokens(ids))
    wait_for(token, activating.at(token.account), false);
}

void SimulationWorker::wait_for(const IssuedToken& issued, AccountPlan plan, bool is_recovery) {
  const auto until =
      now_of_play() +
      (request_.delay ? *request_.delay : Milliseconds(std::chrono::seconds(issued.seconds_left)));
  waiting_.add({.id = issued.id, .account = issued.account, .plan = plan, .is_recovery = is_recovery}, until);
  ++state_.waiting;
}

void SimulationWorker::release(const std::vector<SimulatedToken>& tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  state_.waiting -= count;
  state_.released += count;
}

bool SimulationWorker::consume_some() {
  if (ready_.empty()) return false;
  const auto end = ready_.begin() + static_cast<std::ptrdiff_t>(std::min(step_, ready_.size()));
  const std::vector<SimulatedToken> tokens(ready_.begin(), end);
  ready_.erase(ready_.begin(), end);
  std::vector<std::int64_t> ids;
  for (const auto& token : tokens)
    ids.push_back(token.id);
  auto consumed = timed(tally_.latency, [&] { return rows_.consume(ids); });
  std::sort(consumed.begin(), consumed.end());
  go_on_after(tokens, consumed);
  return true;
}

void SimulationWorker::go_on_after(const std::vector<SimulatedToken>& tokens,
                                   const std::vector<std::int64_t>& consumed) {
  std::vector<SimulatedToken> recovering;
  std::vector<std::int64_t> suspended;
  for (const auto& token : tokens) {
    const bool usable = std::binary_search(consumed.begin(), consumed.end(), token.id);
    ++(!usable ? tally_.expired : token.is_recovery ? tally_.recovered : tally_.activated);
    if (usable && !token.is_recovery && token.plan.recovers) {
      recovering.push_back(token);
    } else if (token.plan.suspends) {
      suspended.push_back(token.account);
    }
  }
  recover(recovering);
  suspend(suspended);
}

void SimulationWorker::recover(const std::vector<SimulatedToken>& tokens) {
  if (tokens.empty()) return;
  std::unordered_map<std::int64_t, AccountPlan> plans;
  std::vector<std::int64_t> accounts;
  for (const auto& token : tokens) {
    plans.emplace(token.account, token.plan);
    accounts.push_back(token.account);
  }
  const auto issued = timed(tally_.latency, [&] { return rows_.recover(accounts); });
  tally_.tokens += static_cast<std::int64_t>(issued.size());
  for (const auto& token : issued)
    wait_for(token, plans.at(token.account), true);
}

void SimulationWorker::suspend(const std::vector<std::int64_t>& accounts) {
  for (std::size_t from = 0; from < accounts.size(); from += step_) {
    const auto first = accounts.begin() + static_cast<std::ptrdiff_t>(from);
    const auto last = first + static_cast<std::ptrdiff_t>(std::min(step_, accounts.size() - from));
    tally_.suspended += timed(tally_.latency, [&] { return rows_.suspend({first, last}); });
  }
}

void SimulationWorker::sleep() {
  auto until = waiting_.earliest();
  const bool has_room = waiting_.size() <= max_waiting_;
  if (deal_ && has_room) until = std::min(until.value_or(deal_->due), deal_->due);
  std::unique_lock lock(mutex_);
  const auto has_news = [&] { return !inbox_.empty() || state_.stopping; };
  if (until) {
    news_.wait_until(lock, *until, has_news);
  } else {
    news_.wait(lock, has_news);
  }
}

}  // namespace mailroom
