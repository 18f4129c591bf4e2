#include "cmd/event_text.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/moment.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr std::int64_t microseconds = 1'000'000;

}  // namespace

std::string time_text(const Event& event) {
  auto text = moment_text(event.time_us / microseconds);
  if (event.whole_seconds) return text;
  text.pop_back();
  return fmt::format("{}.{:03}Z", text, event.time_us % microseconds / 1000);
}

std::string subject_text(const Event& event) {
  if (event.token) return fmt::format("token {}", *event.token);
  if (event.batch) return fmt::format("batch {}", *event.batch);
  if (event.account) return fmt::format("account {}", *event.account);
  return event.queue.empty() ? "database" : "queue " + event.queue;
}

std::string ids_text(const Event& event) {
  std::string text;
  for (const auto& range : event.matches ? to_id_ranges(*event.matches) : event.tokens)
    text += (text.empty() ? "" : ",") + id_range_text(range);
  return text;
}

int skipped(const Event& event) {
  return event.expired + event.consumed + event.wrong_status + event.invalid;
}

Event masked(Event event) {
  if (!event.email.empty()) event.email = masked_address(event.email);
  if (!event.login.empty()) event.login = masked_address(event.login);
  return event;
}

}  // namespace mailroom
