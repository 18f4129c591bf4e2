#pragma once

#include "doctor/finding.hpp"
#include "doctor/subject.hpp"

namespace mailroom {

/// Runs every check, in order. A check that cannot be made is not left out but found `not checked`. Changes
/// nothing in the database: no row, no object, no setting that outlives its session.
Findings examine(const DoctorSources& sources);

}  // namespace mailroom
