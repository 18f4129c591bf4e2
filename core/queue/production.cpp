// Reads the records of deliveries and batches; those that were pruned count no more.

#include "queue/production.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom {

void require_no_deliveries(Connection& connection, const std::string& sink) {
  const auto found = connection.run(R"(
(SELECT 'mails of queue ' || queue || ' have left this database by way of ' || coalesce(sink, 'a relay')
 FROM mailroom_deliveries WHERE accepted_at IS NOT NULL AND sink IS DISTINCT FROM $1 LIMIT 1)
UNION ALL
(SELECT 'tokens of queue ' || job_type || ' were handed over from this database by mailroom collect'
 FROM mailroom_batches WHERE emitted > 0 AND claimed_by LIKE 'mailroom collect%' LIMIT 1))",
                                    sink);
  if (found.empty()) return;
  throw Error(ExitCode::declined, fmt::format("{}: it may be in production", shown_text(found[0][0].c_str())),
              "--capture takes what is due, so that nobody gets it: use a database of your own, or "
              "--capture-anyway");
}

}  // namespace mailroom
