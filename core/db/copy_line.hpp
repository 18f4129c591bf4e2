// Parses rows of COPY, for libpqxx 6, which streams no views.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mailroom {

/// Splits one line of COPY's text format (PostgreSQL's manual, COPY, "Text Format"), without its newline,
/// into fields. Unescapes each field in place in `line` and sets `fields` to views of the results; a null is
/// empty. Throws std::invalid_argument if the number of fields differs or an escape is incomplete.
void split_copy_line(std::span<char> line, std::span<std::string_view> fields);

}  // namespace mailroom
