// The text for the rate, the delay, the backlog, and a sink that takes nothing.

#include "service/service_status.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/duration.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

/// A delivery that takes longer is worth a word.
constexpr Milliseconds slow{3000};

std::string in_seconds(Milliseconds duration) {
  return format_duration(std::chrono::floor<std::chrono::seconds>(duration));
}

}  // namespace

void ServiceStatus::finished(int emitted, std::optional<Milliseconds> age) {
  delivering_since_.reset();
  emitted_ += emitted;
  if (age) oldest_ = std::max(oldest_.value_or(Milliseconds(0)), *age);
}

bool ServiceStatus::is_behind() const {
  return std::any_of(claims_.begin(), claims_.end(), [](const auto& claim) { return claim.second.took; });
}

std::int64_t ServiceStatus::waiting() const {
  if (is_behind() && counted_) return *counted_;
  std::int64_t pending = 0;
  for (const auto& [queue, claim] : claims_)
    pending += claim.pending;
  return pending;
}

std::string ServiceStatus::renew(TimePoint now) {
  const double seconds = std::max(std::chrono::duration<double>(now - renewed_).count(), 0.001);
  const auto since = emitted_ - emitted_before_;
  std::string text = is_connected_ ? fmt::format("{:.1f} tokens/s", static_cast<double>(since) / seconds)
                                   : std::string("waiting for the database");
  if (is_connected_ && since > 0 && oldest_)
    text += fmt::format(", emitted up to {} after their creation", in_seconds(*oldest_));
  if (is_connected_) text += fmt::format(", {} pending", with_thousands(waiting()));
  if (delivering_since_ && now - *delivering_since_ >= slow) {
    text += fmt::format(", the other side takes nothing for {}",
                        in_seconds(std::chrono::duration_cast<Milliseconds>(now - *delivering_since_)));
  }
  text += fmt::format("; {} emitted", with_thousands(emitted_));
  emitted_before_ = emitted_;
  oldest_.reset();
  renewed_ = now;
  return text;
}

}  // namespace mailroom
