// What a carrier found out about its other side, as a finding of doctor.
#pragma once

#include "carriers/carriers.hpp"
#include "doctor/finding.hpp"

namespace mailroom {

Finding finding_of(const SinkFinding& found);

}  // namespace mailroom
