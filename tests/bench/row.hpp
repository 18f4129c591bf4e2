#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/stage.hpp"

namespace mailroom::bench {

/// One number that a run of a row produced.
struct Figure {
  std::string name{};  ///< unique within its row; may be empty
  double value = 0;
  std::string unit{};
};

using Figures = std::vector<Figure>;

/// One measured variant. Its name is a path: `--only drain` selects all rows that begin with `drain/`.
struct Row {
  std::string name;
  std::string meaning;
  std::function<void(Stage&)> prepare;     ///< called once before the first run; loads data
  std::function<Figures(Stage&)> measure;  ///< one run
  int max_runs = 1000;                     ///< lower for slow rows
  bool only_by_name = false;               ///< measured only if `--only` names it
};

std::vector<Row> drain_rows();
std::vector<Row> latency_rows();
std::vector<Row> queue_rows();
std::vector<Row> producer_rows();
std::vector<Row> migrate_rows();
std::vector<Row> memory_rows();
std::vector<Row> idle_rows();
std::vector<Row> verify_rows();
std::vector<Row> send_rows();
std::vector<Row> message_rows();
std::vector<Row> growth_rows();
std::vector<Row> prune_rows();
std::vector<Row> bounce_rows();
/// Beside a Postfix in scripts/with-postfix --hold.
std::vector<Row> submission_rows();
/// Needs the clusters of scripts/with-nats and scripts/with-rabbitmq.
std::vector<Row> broker_rows();

/// This program as a counterpart of `collect`: `--publish BROKER FILE` publishes the lines of a file, and
/// does nothing else.
int publish_file(const std::string& broker, const std::string& file);

}  // namespace mailroom::bench
