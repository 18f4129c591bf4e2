#include "bench/handover.hpp"

#include <fmt/format.h>
#include <stdexcept>

#include "bench/collected.hpp"

namespace mailroom::bench {
namespace {

constexpr std::int64_t tokens_a_line = 10;

}  // namespace

Handover prepare_handover(Stage& stage) {
  const Handover handover{
      .backlog = plain_backlog(stage), .lines = stage.scaled(10'000), .file = stage.path("handed_over")};
  stage.once(handover.file, [&] {
    auto setup = handover_collector(stage, handover, {"--format", "jsonl", "--lines-per-claim", "1000"});
    setup.output = handover.file;
    Process(setup).wait();
    if (count_lines(handover.file) != handover.lines) throw std::runtime_error("not all lines were written");
  });
  return handover;
}

Process::Setup handover_collector(Stage& stage, const Handover& handover, std::vector<std::string> options) {
  const auto connection = stage.connect(handover.backlog.database);
  place_cursor(*connection, handover.backlog.due - tokens_a_line * handover.lines);
  connection->run("TRUNCATE mailroom_deliveries, mailroom_sinks");
  options.insert(options.begin(),
                 {"collect", "--once", "-q", "--batch-limit", std::to_string(tokens_a_line)});
  return stage.mailroom(handover.backlog.database, std::move(options));
}

void require_accepted(Stage& stage, const Handover& handover) {
  const auto accepted = stage.connect(handover.backlog.database)
                            ->run("SELECT count(*) FROM mailroom_deliveries WHERE state = 'accepted'")[0][0]
                            .as<std::int64_t>();
  if (accepted != tokens_a_line * handover.lines)
    throw std::runtime_error(
        fmt::format("{} tokens were accepted, not those of {} lines", accepted, handover.lines));
}

}  // namespace mailroom::bench
