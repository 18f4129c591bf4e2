#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mailroom {

/// Takes one line of COPY's text format (PostgreSQL's manual, COPY, "Text Format") apart, without its
/// newline: fields between tabs, in which a backslash escapes. Writes the plain text of each field over its
/// place in `line`, and into `fields` where that is; a null is empty. Throws std::invalid_argument when there
/// are more or fewer fields.
void split_copy_line(std::span<char> line, std::span<std::string_view> fields);

}  // namespace mailroom
