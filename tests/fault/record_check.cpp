#include "fault/record_check.hpp"

#include <fmt/format.h>

#include "queue/queue_definition.hpp"
#include "reconcile/reconciliation.hpp"

namespace mailroom::test {

void account_for_tokens(Connection& connection, Outcome& outcome) {
  for (const auto& queue : reconcile(connection, {.queues = queue_names(connection), .until = "9999-01-01"}).queues) {
    outcome.unexplained += static_cast<std::size_t>(queue.unexplained_tokens());
    for (const auto& unexplained : queue.unexplained) {
      outcome.problems.push_back(fmt::format("not so: every token of {} is explained ({}: {})", queue.queue,
                                             unexplained.reason, id_ranges_text(unexplained.ids)));
    }
  }
}

}  // namespace mailroom::test
