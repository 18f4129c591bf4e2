// list and show.

#include "base/json.hpp"
#include "cmd/queue/queue_action.hpp"
#include "cmd/queue/queue_report.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {
namespace {

ListedQueue with_pending(db::Connection& connection, const queue::QueueRecord& queue) {
  const auto pending = status::read_pending_tokens(connection, queue.name);
  return {.queue = queue, .pending = pending.total(), .is_estimate = pending.estimated};
}

/// Omits a queue that another session has dropped meanwhile.
std::vector<ListedQueue> read_listed(db::Connection& connection, const queue::QueueCatalogue& catalogue) {
  std::vector<ListedQueue> queues;
  for (const auto& queue : catalogue.queues) {
    try {
      queues.push_back(with_pending(connection, queue));
    } catch (const db::DatabaseError& error) {
      if (error.sqlstate() != db::sqlstate::unknown_queue) throw;
    }
  }
  return queues;
}

}  // namespace

ExitCode queue_list(const QueueOptions&, Context& context) {
  const auto connection = context.connect_to_schema("queue");
  const auto catalogue = queue::read_queues(*connection);
  const auto queues = read_listed(*connection, catalogue);
  if (context.global().output == OutputFormat::json) {
    context.print(json_text(queue_list_json(queues, catalogue)) + "\n");
  } else {
    context.print(render_queue_list(queues, catalogue, context.out().width()));
  }
  return ExitCode::done;
}

ExitCode queue_show(const QueueOptions& options, Context& context) {
  const auto connection = context.connect_to_schema("queue");
  const auto catalogue = queue::read_queues(*connection);
  const auto listed = with_pending(*connection, queue::require_queue(catalogue, options.name));
  if (context.global().output == OutputFormat::json) {
    context.print(json_text(queue_json(listed, catalogue)) + "\n");
  } else {
    context.print(render_queue(listed, catalogue, context.out().width()));
  }
  return ExitCode::done;
}

}  // namespace mailroom::cmd
