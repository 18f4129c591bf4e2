// Reads all queues from jobs, unless the configuration names some.

#include "status/shown_queues.hpp"

namespace mailroom {

bool names_queues(const Settings& settings) {
  return setting_of(settings, "collect.queue").origin.kind != OriginKind::default_value;
}

std::vector<std::string> shown_queues(Connection& connection, const Settings& settings) {
  if (names_queues(settings)) return settings.collect.queues;
  std::vector<std::string> queues;
  for (const auto& row : connection.run(R"(
SELECT j.job_type FROM jobs j LEFT JOIN mailroom_queues q ON q.name = j.job_type
ORDER BY coalesce(q.priority, 0) DESC, j.job_type)"))
    queues.emplace_back(row[0].c_str());
  return queues.empty() ? settings.collect.queues : queues;
}

}  // namespace mailroom
