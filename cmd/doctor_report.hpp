#pragma once

#include <string>

#include "doctor/finding.hpp"

namespace mailroom {

/// A line a finding, under those that are not in order how to mend them, and a sum at the end. Reasons are
/// broken to 80 columns, commands are not.
std::string render_text(const Findings& findings, bool colour);
std::string render_json(const Findings& findings);

}  // namespace mailroom
