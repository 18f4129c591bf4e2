// Events that come as lines, as a script writes them.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "cmd/bounce/bounce_reader.hpp"

namespace mailroom::cmd {

/// Reads an event, or an array of them, from each line, and records them many at a time. `tell`: is given
/// what was recorded. Throws Error(failed) for a line that is none, when those before it are recorded. `name`
/// says where the lines are from.
void read_event_lines(std::istream& in, const std::string& name, BounceReader& reader,
                      const std::function<void(const suppression::RecordedBounce&)>& tell);

}  // namespace mailroom::cmd
