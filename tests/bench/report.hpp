#pragma once

#include <string>

#include "bench/machine.hpp"
#include "bench/results.hpp"

namespace mailroom::bench {

/// Tables as text: the figures, then the targets with what was reached.
std::string render_text(const Results& results, const Machine& machine);
std::string render_json(const Results& results, const Machine& machine, double scale);

}  // namespace mailroom::bench
