#include "simulation/emission_watch.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mailroom {

EmissionWatch::EmissionWatch(LastingConnection& connection) : connection_(connection) {
  connection_.prepare("simulate_poll", R"(
SELECT b.id, b.emitted_at IS NOT NULL, b.dead_at IS NOT NULL, lower(r), upper(r)
FROM (
  SELECT * FROM mailroom_batches WHERE job_type = $1::text AND id > $2::bigint
  UNION ALL
  SELECT * FROM mailroom_batches WHERE id = ANY ($3::bigint[])) b
LEFT JOIN LATERAL unnest(b.ids) r ON true)");
  const auto rows = connection_.run([](Connection& session) {
    return session.run(R"(
SELECT job_type,
  coalesce((SELECT b.id FROM mailroom_batches b WHERE b.job_type = j.job_type ORDER BY b.id DESC LIMIT 1), 0)
FROM jobs j)");
  });
  for (const auto& row : rows)
    queues_.push_back({row[0].c_str(), row[1].as<std::int64_t>(), {}});
}

std::vector<IdRange> EmissionWatch::poll() {
  std::vector<IdRange> emitted;
  for (auto& queue : queues_)
    poll(queue, emitted);
  return emitted;
}

void EmissionWatch::poll(Queue& queue, std::vector<IdRange>& emitted) {
  // Claims of one queue commit in id order, so no batch below the newest can still appear. Claims of two
  // queues need not, so each queue has its own `newest`.
  const auto rows = connection_.run([&](Connection& session) {
    return session.run_prepared("simulate_poll", queue.name, queue.newest,
                                fmt::format("{{{}}}", fmt::join(queue.open, ",")));
  });
  queue.open.clear();
  for (const auto& row : rows) {
    const auto batch = row[0].as<std::int64_t>();
    queue.newest = std::max(queue.newest, batch);
    const bool is_emitted = row[1].as<bool>();
    const bool is_dead = row[2].as<bool>();
    const bool has_ids = !row[3].is_null();
    if (is_emitted && has_ids) emitted.push_back({row[3].as<std::int64_t>(), row[4].as<std::int64_t>()});
    // A batch has one row per range.
    const bool is_known = !queue.open.empty() && queue.open.back() == batch;
    if (!is_emitted && !is_dead && !is_known) queue.open.push_back(batch);
  }
}

}  // namespace mailroom
