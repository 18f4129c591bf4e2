#pragma once

#include <cstddef>
#include <string>

#include "audit/history.hpp"
#include "audit/overview.hpp"

namespace mailroom {

/// Columns that a line may have; 0 for as many as it takes.
using Width = std::size_t;

/// A summary, then a line for each entry of the timeline; a longer one than `width` goes on indented.
std::string render_text(const History& history, Width width);
std::string render_text(const Overview& overview, Width width);

/// An object for the summary, then one for each entry of the timeline, a line each.
std::string render_json(const History& history);
std::string render_json(const Overview& overview);

}  // namespace mailroom
