#include "service/backlog.hpp"

#include "base/error.hpp"
#include "db/conninfo.hpp"
#include "status/queue_status.hpp"

namespace mailroom {

CountBacklog backlog_counter(const std::string& conninfo, const std::vector<std::string>& queues) {
  return [conninfo, queues]() -> std::optional<std::int64_t> {
    try {
      Connection connection(with_defaults(conninfo, {{"connect_timeout", "2"}}), "mailroom status");
      connection.run("SET statement_timeout = '2s'");
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
