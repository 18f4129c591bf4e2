// The output of audit --stages, which shows where tokens spend their time.
#pragma once

#include <string>

#include "audit/stages.hpp"

namespace mailroom {

/// How long tokens took between stages, then the slowest tokens.
std::string render_text(const StageReport& report, std::size_t width);
/// One object.
std::string render_json(const StageReport& report);

}  // namespace mailroom
