// The output of doctor: each finding with its fix, and totals.
#pragma once

#include <string>

#include "doctor/finding.hpp"

namespace mailroom::cmd {

struct DoctorStyle {
  bool colour = false;
  std::size_t width = 80;  ///< to which reasons are wrapped; commands are not wrapped
};

/// One line per finding, below it how to fix a problem, and totals at the end.
std::string render_text(const doctor::Findings& findings, const DoctorStyle& style);
std::string render_json(const doctor::Findings& findings);

}  // namespace mailroom::cmd
