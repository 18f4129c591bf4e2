#pragma once

#include <string>

#include "doctor/finding.hpp"

namespace mailroom {

struct DoctorStyle {
  bool colour = false;
  std::size_t width = 80;  ///< that reasons are wrapped to; commands are not
};

/// A line a finding, under those that are not in order how to mend them, and a sum at the end.
std::string render_text(const Findings& findings, const DoctorStyle& style);
std::string render_json(const Findings& findings);

}  // namespace mailroom
