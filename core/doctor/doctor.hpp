// Everything that mailroom doctor does, apart from its output.
#pragma once

#include "doctor/finding.hpp"
#include "doctor/subject.hpp"

namespace mailroom {

/// Runs every check, in order. A check that cannot run is reported as `not checked`. Changes nothing in the
/// database: no row, no object, no setting that outlives its session. Uses up an id of accounts and of
/// tokens.
Findings examine(const DoctorSources& sources);

}  // namespace mailroom
