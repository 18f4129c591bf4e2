#pragma once

#include "doctor/finding.hpp"
#include "doctor/schema_objects.hpp"

namespace mailroom {

/// What `present` lacks of the expected tables, columns, indexes and functions. (Triggers have a check of
/// their own, and what is there in addition is nobody's business.)
Findings judge_drift(const SchemaObjects& present);

}  // namespace mailroom
