#include "bench/pgbench.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>

#include "support/subprocess.hpp"

namespace mailroom::bench {
namespace {

/// Reads the number in `tps = 5123.4 (without initial connection time)`.
double read_rate(const std::string& report) {
  const auto at = report.find("tps = ");
  if (at == std::string::npos) throw std::runtime_error("pgbench gave no rate:\n" + report);
  return std::stod(report.substr(at + 6));
}

}  // namespace

double statements_per_second(Stage& stage, const std::string& database, int clients, const std::string& sql) {
  std::ofstream(stage.path("statement.sql")) << sql;
  auto setup = stage.program(database, {test::server_binaries() + "/pgbench", "-n", "-M", "prepared", "-c",
                                        std::to_string(clients), "-j", std::to_string(std::min(clients, 2)),
                                        "-T", fmt::format("{:.0f}", std::max(1.0, stage.scaled_seconds(3))),
                                        "-f", stage.path("statement.sql")});
  setup.output = stage.path("pgbench");
  Process(setup).wait();
  return read_rate(test::read_file(setup.output));
}

}  // namespace mailroom::bench
