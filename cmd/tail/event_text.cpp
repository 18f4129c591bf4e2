#include "cmd/tail/event_text.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/moment.hpp"
#include "base/text.hpp"

namespace mailroom {

std::string time_text(const Event& event) {
  return event.whole_seconds ? moment_text(event.time_us / microseconds_a_second)
                             : precise_moment_text(event.time_us);
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
