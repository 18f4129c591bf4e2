// Text on a terminal: columns, wrapping, and bars for values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// Columns that `text` takes on a terminal: two for East Asian wide characters and emoji, none for common
/// combining characters, one for all others and for each byte of invalid UTF-8.
std::size_t display_width(std::string_view text);

/// `text` cut to `width` columns; ends in an ellipsis if it was cut.
std::string fit(std::string_view text, std::size_t width);

/// Wraps `text` into lines of at most `width` columns. `taken` columns of the first line are in use already;
/// further lines are indented by `indent` spaces. A longer word gets its own line. `width` 0 means one line.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent, std::size_t taken = 0);

/// `text` with each line longer than `width` wrapped, keeping the line's indent. `width` 0 changes nothing.
std::string folded(std::string_view text, std::size_t width);

/// One column per value, from ▁ for zero to █ for the largest; a space for a missing value. Values must not
/// be negative.
std::string sparkline(const std::vector<std::optional<double>>& values);

/// The largest of `values`; 0 if there is none.
double largest(const std::vector<std::optional<double>>& values);

}  // namespace mailroom
