// Opens a session with short time limits for each count, and takes an error for an unknown number.

#include "service/backlog.hpp"

#include "base/error.hpp"
#include "status/queue_status.hpp"

namespace mailroom {

CountBacklog backlog_counter(const DatabaseTarget& target, const std::vector<std::string>& queues) {
  return [target, queues]() -> std::optional<std::int64_t> {
    try {
      constexpr Milliseconds patience{2000};
      Connection connection(target, "mailroom status", {.answer = patience, .statement = patience});
      std::int64_t waiting = 0;
      for (const auto& queue : queues)
        waiting += read_queue_status(connection, queue).waiting.total();
      return waiting;
    } catch (const Error&) {
      // The consumer's session reports what is wrong with the database; here it means that nobody knows.
      return std::nullopt;
    }
  };
}

}  // namespace mailroom
