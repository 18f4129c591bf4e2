#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/stage.hpp"

namespace mailroom::bench {

/// One number that a run of a row gave.
struct Figure {
  std::string name{};  ///< what tells it apart within its row; may be empty
  double value = 0;
  std::string unit{};
};

using Figures = std::vector<Figure>;

/// One variant that is measured. Its name is a path: `--only drain` takes all that begins with `drain/`.
struct Row {
  std::string name;
  std::string meaning;
  std::function<void(Stage&)> prepare;     ///< called once before the first run; loads data
  std::function<Figures(Stage&)> measure;  ///< one run
  int most_runs = 1000;                    ///< for what takes long
};

std::vector<Row> drain_rows();
std::vector<Row> latency_rows();
std::vector<Row> producer_rows();
std::vector<Row> migrate_rows();
std::vector<Row> memory_rows();
std::vector<Row> idle_rows();
std::vector<Row> verify_rows();

}  // namespace mailroom::bench
