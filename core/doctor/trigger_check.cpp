// Do the triggers exist, and do they fire for the sessions that insert? By the rules of status.

#include <fmt/format.h>

#include "db/qualified_name.hpp"
#include "doctor/queue_finding.hpp"
#include "doctor/subject.hpp"
#include "schema/schema_objects.hpp"
#include "status/trigger_status.hpp"

namespace mailroom {

Findings check_triggers(Subject& subject) {
  auto& connection = *subject.connection;
  const auto status =
      connection.transact([](pqxx::work& transaction) { return read_trigger_status(transaction); });
  Findings findings;
  for (const auto& found : judge_triggers(status, quoted_schema(connection)))
    findings.push_back(finding_of(found));
  return or_fine(std::move(findings), fmt::format("all {} are enabled", expected_triggers().size()));
}

}  // namespace mailroom
