#pragma once

#include <cstddef>
#include <string>

#include "audit/history.hpp"
#include "audit/overview.hpp"

namespace mailroom {

/// The maximum columns of a line; 0 for no limit.
using Width = std::size_t;

/// Returns a summary, then one line per entry of the timeline. Lines longer than `width` are wrapped,
/// indented.
std::string render_text(const History& history, Width width);
std::string render_text(const Overview& overview, Width width);

/// Returns one JSON object per line: the summary, then the entries of the timeline.
std::string render_json(const History& history);
std::string render_json(const Overview& overview);

}  // namespace mailroom
