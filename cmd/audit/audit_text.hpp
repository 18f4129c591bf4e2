// The output of audit for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "audit/history.hpp"

namespace mailroom {

/// The maximum columns of a line; 0 for no limit.
using Width = std::size_t;

/// Returns a summary, then one line per entry of the timeline. Lines longer than `width` are wrapped,
/// indented.
std::string render_text(const History& history, Width width);
std::string render_text(const Overview& overview, Width width);

/// The name of an event: kind_text(), but `issued` for a token that was created.
std::string_view event_name(const Event& event);

}  // namespace mailroom
