// Times between processes are in whole minutes, so that what they share does not change with each refusal.

#include "delivery/domain_limits.hpp"

#include <algorithm>
#include <cmath>

namespace mailroom::delivery {
namespace {

/// A mail that would leave sooner leaves now.
constexpr Milliseconds soon{200};

std::int64_t minute_of(WallTime time) {
  return std::chrono::floor<std::chrono::minutes>(time.time_since_epoch()).count();
}

/// To one digit.
double rounded(double rate) {
  const double unit = std::pow(10, std::floor(std::log10(rate)));
  return std::round(rate / unit) * unit;
}

}  // namespace

DomainLimits::Limit& DomainLimits::limit(const std::string& domain, WallTime wall) {
  constexpr std::size_t most = 64;
  std::erase_if(limits_, [&](const auto& entry) { return wall - entry.second.last > kept; });
  const auto found = limits_.find(domain);
  if (found != limits_.end()) return found->second;
  if (limits_.size() >= most)
    limits_.erase(std::ranges::min_element(limits_, {}, [](const auto& entry) { return entry.second.last; }));
  return limits_.emplace(domain, Limit{.pace = Pace(limits_.size()), .since = wall}).first->second;
}

bool DomainLimits::refused(const std::string& domain, const std::string& why, TimePoint left, TimePoint now,
                           WallTime wall) {
  auto& own = limit(domain, wall);
  own.last = wall;
  own.why = why;
  if (++own.in_row >= row) {
    own.pace.refused(left, now);
    own.rate = rounded(own.pace.limit().value_or(Pace::lowest));
  }
  const auto refused =
      std::ranges::count_if(limits_, [&](const auto& entry) { return wall - entry.second.last < recent; });
  if (static_cast<std::size_t>(refused) < many && waiting_ < alone) return true;
  limits_.clear();
  return false;
}

void DomainLimits::accepted(const std::string& domain, TimePoint left, TimePoint now) {
  const auto found = limits_.find(domain);
  if (found == limits_.end()) {
    waiting_ = 0;
  } else {
    found->second.in_row = 0;
    found->second.pace.took(left, now);
  }
}

std::optional<Milliseconds> DomainLimits::wait(const std::string& domain, TimePoint now) {
  const auto found = limits_.find(domain);
  if (found == limits_.end()) return std::nullopt;
  auto& [pace, returns, since, last, why, rate, in_row] = found->second;
  if (pace.next() <= now + soon) {
    pace.left(now);
    return std::nullopt;
  }
  ++waiting_;
  return returns.next(now, pace.next() - now, pace.gap());
}

nlohmann::json DomainLimits::json(WallTime now) const {
  auto domains = nlohmann::json::array();
  for (const auto& [domain, limit] : limits_) {
    if (now - limit.last > kept || limit.rate <= 0) continue;
    domains.push_back({{"domain", domain},
                       {"since", minute_of(limit.since)},
                       {"last", minute_of(limit.last)},
                       {"why", limit.why},
                       {"rate", limit.rate}});
  }
  return domains;
}

void DomainLimits::take(const nlohmann::json& domains, TimePoint now) {
  std::map<std::string, Limit> known;
  for (const auto& each : domains) {
    const auto name = text_at(each, "domain");
    const auto time = [&](const char* key) {
      return WallTime(std::chrono::minutes(each.at(key).get<std::int64_t>()));
    };
    auto own = limits_.extract(name);
    if (own.empty()) {
      Limit limit{.pace = Pace(known.size()), .since = time("since")};
      limit.pace.refused(now, now);
      known.emplace(name, std::move(limit));
    } else {
      known.insert(std::move(own));
    }
    auto& limit = known.at(name);
    limit.last = std::max(limit.last, time("last"));
    limit.why = text_at(each, "why");
    limit.rate = each.at("rate").get<double>();
  }
  limits_ = std::move(known);
}

}  // namespace mailroom::delivery
