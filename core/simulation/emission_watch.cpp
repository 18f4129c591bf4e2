// Reads new and open rows of mailroom_batches, queue by queue.

#include "simulation/emission_watch.hpp"

#include <algorithm>

#include "db/values.hpp"

namespace mailroom::simulation {
void require_queue_for(db::Connection& connection, const std::string& action) {
  const auto rows = connection.run(R"(
SELECT FROM jobs j WHERE mailroom_takes(mailroom_queue_actions(j.job_type), $1::token_action) LIMIT 1)",
                                   action);
  if (!rows.empty()) return;
  throw Error(ExitCode::unusable, "no queue takes " + action + " tokens, so none would be emitted",
              "let a queue take them, or simulate without --activate");
}

EmissionWatch::EmissionWatch(db::Connection& connection) : connection_(connection) {
  const auto rows = connection_.run(R"(
SELECT job_type AS queue,
  coalesce((SELECT b.id FROM mailroom_batches b WHERE b.queue = j.job_type ORDER BY b.id DESC LIMIT 1), 0) AS newest
FROM jobs j)");
  for (const auto& row : rows)
    queues_.push_back({row.text("queue"), row.number("newest"), {}});
}

std::vector<selection::IdRange> EmissionWatch::poll() {
  std::vector<selection::IdRange> emitted;
  for (auto& queue : queues_) {
    // Claims of one queue commit in id order, so no batch below the newest can still appear. Claims of two
    // queues need not, so each queue has its own `newest`.
    const auto rows = connection_.run(R"(
SELECT id, emitted_at IS NOT NULL AS emitted, dead_at IS NOT NULL AS dead, ids
FROM mailroom_batches WHERE queue = $1::text AND id > $2::bigint
UNION ALL
SELECT id, emitted_at IS NOT NULL, dead_at IS NOT NULL, ids
FROM mailroom_batches WHERE id = ANY ($3::bigint[]))",
                                      queue.name, queue.newest, db::array_text(queue.open));
    queue.open.clear();
    for (const auto& row : rows) {
      const auto batch = row.number("id");
      queue.newest = std::max(queue.newest, batch);
      if (row.flag("emitted")) {
        const auto ids = selection::parse_id_ranges(row.view("ids"));
        emitted.insert(emitted.end(), ids.begin(), ids.end());
      } else if (!row.flag("dead")) {
        queue.open.push_back(batch);
      }
    }
  }
  return emitted;
}

}  // namespace mailroom::simulation
