#pragma once

#include <string>
#include <vector>

#include "bench/results.hpp"

namespace mailroom::bench {

/// What one run measured of two builds.
struct Turn {
  Results ours;
  Results theirs;
};

/// A figure that both builds have.
struct Compared {
  std::string name;
  std::string unit;
  Spread ours;
  Spread theirs;
  Spread ratio;           ///< ours / theirs, run by run
  bool is_worse = false;  ///< by more than 5 %, in the median
};

std::vector<Compared> compare(const std::vector<Turn>& turns);
/// A table of them. `other` names the other build.
std::string render_comparison(const std::vector<Compared>& rows, const std::string& other);

/// The figures that render_json() has written.
Results read_results(const std::string& json);
/// Prints the comparison of the runs in a directory, RUN.this.json and RUN.other.json; a run that has not
/// both is left out. Returns the exit status.
int print_comparison(const std::string& directory, const std::string& other);

}  // namespace mailroom::bench
