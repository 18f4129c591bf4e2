// The output of audit for programs, as lines of JSON.
#pragma once

#include <string>

#include "audit/history.hpp"

namespace mailroom {

/// Returns one JSON object per line: the summary, then the entries of the timeline.
std::string render_json(const History& history);
std::string render_json(const Overview& overview);

}  // namespace mailroom
