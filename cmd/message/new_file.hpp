// A file with what is on record of people: new, and for its owner alone.
#pragma once

#include <string>

namespace mailroom::cmd {

/// Throws Error(usage) if there is such a file already, Error(output_closed) if it cannot be written.
void write_new_file(const std::string& path, const std::string& text);

}  // namespace mailroom::cmd
