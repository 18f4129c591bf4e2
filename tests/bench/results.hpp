#pragma once

#include <string>
#include <vector>

#include "bench/row.hpp"

namespace mailroom::bench {

/// One figure over all runs; a run without it has no value.
struct Series {
  std::string name;  ///< the row's name, then the figure's: `latency/100 p99`
  std::string unit;
  std::vector<double> values{};
};

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

/// Needs at least one value.
Spread spread_of(std::vector<double> values);

/// 1,234,567 or 123 or 1.23 or 0.0123.
std::string number_text(double value);

class Results {
 public:
  void add(const std::string& row, const Figures& figures);
  void fail(const std::string& row, const std::string& reason) { failures_.push_back(row + ": " + reason); }

  const std::vector<Series>& all() const { return series_; }
  const std::vector<std::string>& failures() const { return failures_; }
  /// Null when nothing was measured under this name.
  const Series* find(const std::string& name) const;

 private:
  std::vector<Series> series_;
  std::vector<std::string> failures_;
};

}  // namespace mailroom::bench
