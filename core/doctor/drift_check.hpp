#pragma once

#include "doctor/finding.hpp"
#include "doctor/schema_objects.hpp"

namespace mailroom {

/// Reports expected tables, columns, indexes and functions that `present` lacks. check_triggers() checks
/// triggers; additional objects are not reported.
Findings judge_drift(const SchemaObjects& present);

}  // namespace mailroom
