// The rules about relays and other sinks, and about what they say of deliveries.

#include <fmt/format.h>

#include "base/text.hpp"
#include "status/queue_health.hpp"
#include "status/session_text.hpp"

namespace mailroom {
namespace {

constexpr std::int64_t many_rejections = 3;

/// True for a reason that begins with a code of 5xx. Such a refusal does not heal by itself, unlike that of a
/// relay that is down or busy.
bool is_permanent_refusal(const std::string& reason) {
  const auto is_digit = [&](std::size_t at) { return reason[at] >= '0' && reason[at] <= '9'; };
  return reason.size() > 3 && reason[0] == '5' && is_digit(1) && is_digit(2) && reason[3] == ' ';
}

/// A wrong sender or a suspended account may look like wrong addresses.
std::int64_t rejections_without_success(const DeliveryStatus& deliveries) {
  std::int64_t rejected = 0;
  for (const auto& [state, count] : deliveries.last_hour) {
    if (state == "accepted") return 0;
    if (state == "rejected") rejected = count;
  }
  return rejected;
}

}  // namespace

std::vector<QueueFinding> judge_sinks(const DeliveryStatus& deliveries) {
  std::vector<QueueFinding> found;
  for (const auto& sink : deliveries.sinks) {
    found.push_back(
        {is_permanent_refusal(sink.reason) ? Severity::failure : Severity::warning,
         "sink_unavailable",
         fmt::format("{} has been unavailable for {}, after {}: {}. Tokens wait in the queue", sink.name,
                     age_text(sink.lasts), counted(sink.failures, "failure"), sink.reason),
         {},
         "mailroom doctor tries it, and says more"});
  }
  const auto rejected = rejections_without_success(deliveries);
  if (rejected >= many_rejections) {
    found.push_back(
        {Severity::warning,
         "only_rejections",
         fmt::format("{} were rejected in the last hour, and none was accepted", counted(rejected, "token")),
         {},
         "mailroom tail --state rejected --since 1h shows what was said of each"});
  }
  return found;
}

}  // namespace mailroom
