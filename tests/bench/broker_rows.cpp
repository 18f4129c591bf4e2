// How fast `collect` hands lines over to NATS and RabbitMQ, beside a program that only publishes them, with
// the same library: clusters of three nodes on the same cores.

#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>

#include "bench/brokers.hpp"
#include "bench/handover.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {
namespace {

/// From the start to the end of the process. Throws std::runtime_error unless each line is there once.
template <typename Prepare>
Figures measure(Stage& stage, const BrokerKind& kind, Prepare prepare) {
  const auto handover = prepare_handover(stage);
  const auto broker = kind.connect();
  broker->make_empty();
  const auto cost = Process(prepare(handover)).wait();
  if (broker->count() != handover.lines)
    throw std::runtime_error(fmt::format("{} of {} lines are there", broker->count(), handover.lines));
  return {{.value = static_cast<double>(handover.lines) / cost.seconds, .unit = "lines/s"}};
}

Figures measure_bare(Stage& stage, const BrokerKind& kind) {
  return measure(stage, kind, [&](const Handover& handover) {
    return Process::Setup{.command = {"/proc/self/exe", "--publish", kind.name, handover.file},
                          .errors = stage.path("errors")};
  });
}

Figures measure_collector(Stage& stage, const BrokerKind& kind, int lines_per_claim) {
  auto figures = measure(stage, kind, [&](const Handover& handover) {
    auto setup = handover_collector(
        stage, handover,
        {"--to", std::getenv(kind.address.c_str()), "--lines-per-claim", std::to_string(lines_per_claim)});
    for (const auto& [setting, variable] : kind.settings)
      setup.environment[setting] = std::getenv(variable.c_str());
    return setup;
  });
  require_accepted(stage, prepare_handover(stage));
  return figures;
}

std::vector<BrokerKind> all_kinds() {
  return {nats_kind(), amqp_kind()};
}

}  // namespace

BrokerKind broker_kind(const std::string& name) {
  for (const auto& kind : all_kinds()) {
    if (kind.name == name) return kind;
  }
  throw std::runtime_error("there is no broker " + name);
}

int publish_file(const std::string& broker, const std::string& file) {
  std::vector<std::string> lines;
  std::ifstream input(file);
  for (std::string line; std::getline(input, line);)
    lines.push_back(line);
  broker_kind(broker).connect()->publish(lines);
  return 0;
}

std::vector<Row> broker_rows() {
  const auto prepare = [](Stage& stage) { prepare_handover(stage); };
  std::vector<Row> rows;
  for (const auto& kind : all_kinds()) {
    if (std::getenv(kind.address.c_str()) == nullptr)
      throw std::runtime_error(kind.address + " is not set: scripts/bench --brokers runs the clusters");
    rows.push_back({.name = fmt::format("handover/{}/bare", kind.name),
                    .meaning = "a program that only publishes lines of ten tokens, 64 in flight",
                    .prepare = prepare,
                    .measure = [kind](Stage& stage) { return measure_bare(stage, kind); }});
    for (const int lines : {64, 256}) {
      rows.push_back(
          {.name = fmt::format("handover/{}/{}", kind.name, lines),
           .meaning = fmt::format("one collector, the same lines, {} a claim", lines),
           .prepare = prepare,
           .measure = [kind, lines](Stage& stage) { return measure_collector(stage, kind, lines); }});
    }
  }
  return rows;
}

}  // namespace mailroom::bench
