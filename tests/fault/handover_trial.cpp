#include "fault/handover_trial.hpp"

#include <fmt/format.h>
#include <sstream>

namespace mailroom::test {

HandoverTrial::HandoverTrial(Cluster& cluster, const Plan& plan, Options options, std::string log)
    : DeliveryTrial(cluster, plan, {.consumers = options.collectors, .writers = options.writers}),
      options_(std::move(options)),
      log_(std::move(log)) {
  begin();
}

std::unique_ptr<TestConsumer> HandoverTrial::hire() const {
  std::vector<std::string> words{"--batch-limit",     std::to_string(options_.limit),
                                 "--lines-per-claim", std::to_string(options_.lines),
                                 "--batch-timeout",   "50ms",
                                 "--ack-timeout",     "1s"};
  words.insert(words.end(), options_.more.begin(), options_.more.end());
  return std::make_unique<TestCollector>(conninfo(), words);
}

std::map<std::int64_t, int> HandoverTrial::judge_taken() {
  std::map<std::int64_t, int> taken;
  int unanswered = 0;
  std::istringstream log(read_file(log_));
  for (std::string line; std::getline(log, line);) {
    if (line == "unanswered") ++unanswered;
    if (line == "answered") --unanswered;
    std::istringstream words(line);
    std::string id;
    int attempt = 0;
    if (!(words >> id >> attempt)) continue;
    for (std::int64_t token = 0; words >> token;)
      ++taken[token];
  }
  allow_repeats(unanswered * options_.limit);
  note(fmt::format("{} lines taken and not answered", unanswered));
  return taken;
}

}  // namespace mailroom::test
