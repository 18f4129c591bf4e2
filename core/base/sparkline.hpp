#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mailroom {

/// A column a value, from ▁ for zero to █ for the largest of them, and a space where there is none. Values
/// are not negative.
std::string sparkline(const std::vector<std::optional<double>>& values);

/// The largest of `values`; 0 when there is none.
double largest(const std::vector<std::optional<double>>& values);

}  // namespace mailroom
