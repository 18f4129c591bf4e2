#include "adaptive/played_batches.hpp"

#include <algorithm>
#include <utility>

namespace mailroom::test {
namespace {

using namespace std::chrono_literals;

constexpr auto claim_time = 1ms;
constexpr Milliseconds poll_interval{1000};
constexpr int limits[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};
constexpr Milliseconds timeouts[] = {0ms, 10ms, 20ms, 50ms, 100ms, 200ms, 500ms, 1s, 2s, 5s, 10s};

TimePoint at(std::chrono::microseconds time) {
  return TimePoint(1h) + time;
}

class Play {
 public:
  Play(const Arrivals& arrivals, const consumer::Batcher::Options& options)
      : arrivals_(arrivals), batcher_(options) {}

  PlayedBatches run() {
    batcher_.connected();
    while (played_.tokens < arrivals_.size()) {
      const auto known = std::exchange(arrived_, arrived_by(now_));
      if (arrived_ > known) batcher_.notified();
      const auto decision = batcher_.decide(now_);
      if (decision.poll)
        claim(decision);
      else
        now_ =
            arrived_ < arrivals_.size() ? std::min(decision.until, at(arrivals_[arrived_])) : decision.until;
    }
    return played_;
  }

 private:
  std::size_t arrived_by(TimePoint time) const {
    auto count = arrived_;
    while (count < arrivals_.size() && at(arrivals_[count]) <= time)
      ++count;
    return count;
  }

  /// What the claim's SQL does when all tokens are due and nobody else claims.
  void claim(const consumer::Batcher::Decision& decision) {
    ++played_.claims;
    const auto started = now_;
    now_ = started + claim_time;
    const auto limit = static_cast<std::size_t>(decision.limit);
    const auto seen = std::min(arrived_by(started + claim_time / 2) - played_.tokens, limit);
    claim::ClaimReply reply;
    reply.more = seen == limit;
    reply.last = static_cast<std::int64_t>(played_.tokens + seen);
    if (reply.more || (decision.partial && seen > 0))
      take(seen, reply);
    else
      reply.pending = static_cast<int>(seen);
    batcher_.claimed(decision, reply, started, now_);
  }

  void take(std::size_t tokens, claim::ClaimReply& reply) {
    reply.lease = claim::Lease{static_cast<std::int64_t>(++played_.lines), 1};
    reply.size = static_cast<int>(tokens);
    played_.longest_line = std::max(played_.longest_line, tokens);
    played_.longest_delay = std::max(played_.longest_delay, now_ - at(arrivals_[played_.tokens]));
    for (; tokens > 0; --tokens)
      played_.delay += now_ - at(arrivals_[played_.tokens++]);
  }

  const Arrivals& arrivals_;
  consumer::Batcher batcher_;
  TimePoint now_ = at({});
  std::size_t arrived_ = 0;  ///< tokens that the collector was notified of
  PlayedBatches played_;
};

std::vector<consumer::Batcher::Options> all_pairs() {
  std::vector<consumer::Batcher::Options> pairs;
  for (const int limit : limits) {
    for (const auto timeout : timeouts)
      pairs.push_back(fixed_batching(limit, timeout));
  }
  return pairs;
}

}  // namespace

PlayedBatches play_batches(const Arrivals& arrivals, const consumer::Batcher::Options& options) {
  return Play(arrivals, options).run();
}

consumer::Batcher::Options fixed_batching(int limit, Milliseconds timeout) {
  return {.batch_timeout = timeout, .poll_interval = poll_interval, .line_limit = limit};
}

consumer::Batcher::Options adaptive_batching(Milliseconds line_cost) {
  auto options = fixed_batching(*std::rbegin(limits), *std::rbegin(timeouts));
  options.adaptive = consumer::Batcher::Adaptive{.min_limit = 1, .min_timeout = 10ms, .line_cost = line_cost};
  return options;
}

const std::vector<consumer::Batcher::Options>& fixed_grid() {
  static const auto pairs = all_pairs();
  return pairs;
}

}  // namespace mailroom::test
