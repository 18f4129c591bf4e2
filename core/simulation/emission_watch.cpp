// Reads new and open rows of mailroom_batches, queue by queue.

#include "simulation/emission_watch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "db/values.hpp"

namespace mailroom {
namespace {

/// `value` with its first eight bits kept and all others set.
std::int64_t rounded_up(std::int64_t value) {
  const auto width = std::bit_width(static_cast<std::uint64_t>(value));
  return width > 8 ? value | ((std::int64_t{1} << (width - 8)) - 1) : value;
}

}  // namespace

void require_queue_for(Connection& connection, const std::string& action) {
  const auto rows = connection.run(R"(
SELECT FROM jobs j WHERE mailroom_takes(mailroom_queue_actions(j.job_type), $1::token_action) LIMIT 1)",
                                   action);
  if (!rows.empty()) return;
  throw Error(ExitCode::unusable, "no queue takes " + action + " tokens, so none would be emitted",
              "let a queue take them, or give --delay to consume them unemitted");
}

EmissionWatch::EmissionWatch(LastingConnection& connection) : connection_(connection) {
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
  for (auto& queue : queues_) {
    // Claims of one queue commit in id order, so no batch below the newest can still appear. Claims of two
    // queues need not, so each queue has its own `newest`.
    const auto rows = connection_.run([&](Connection& session) {
      return session.run(R"(
SELECT id, emitted_at IS NOT NULL, dead_at IS NOT NULL, ids
FROM mailroom_batches WHERE job_type = $1::text AND id > $2::bigint
UNION ALL
SELECT id, emitted_at IS NOT NULL, dead_at IS NOT NULL, ids
FROM mailroom_batches WHERE id = ANY ($3::bigint[]))",
                         queue.name, queue.newest, array_text(queue.open));
    });
    queue.open.clear();
    for (const auto& row : rows) {
      const auto batch = row[0].as<std::int64_t>();
      queue.newest = std::max(queue.newest, batch);
      if (row[1].as<bool>()) {
        const auto ids = parse_id_ranges(row[3].c_str());
        emitted.insert(emitted.end(), ids.begin(), ids.end());
      } else if (!row[2].as<bool>()) {
        queue.open.push_back(batch);
      }
    }
  }
  return emitted;
}

void LatencyHistogram::add(std::chrono::microseconds latency) {
  const auto value = std::max<std::int64_t>(latency.count(), 0);
  ++counts_[rounded_up(value)];
  ++count_;
  max_ = std::max(max_, value);
}

std::chrono::microseconds LatencyHistogram::percentile(double percent) const {
  const double rank = std::max(std::ceil(static_cast<double>(count_) * percent / 100.0), 1.0);
  std::int64_t passed = 0;
  for (const auto& [value, count] : counts_) {
    passed += count;
    if (static_cast<double>(passed) >= rank) return std::chrono::microseconds(std::min(value, max_));
  }
  return std::chrono::microseconds(0);
}

}  // namespace mailroom
