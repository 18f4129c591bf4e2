// The small charts of mailroom status.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mailroom {

/// One column per value, from ▁ for zero to █ for the largest; a space for a missing value. Values must not
/// be negative.
std::string sparkline(const std::vector<std::optional<double>>& values);

/// The largest of `values`; 0 if there is none.
double largest(const std::vector<std::optional<double>>& values);

}  // namespace mailroom
