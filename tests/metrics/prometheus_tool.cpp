#include "metrics/prometheus_tool.hpp"

#include "support/catch.hpp"

namespace mailroom::test {

FinishedRun promtool(std::vector<std::string> words) {
  words.insert(words.begin(), MAILROOM_PROMTOOL);
  return run_to_end(words, {});
}

void check_metrics(const std::string& exposition) {
  const TemporaryDirectory directory;
  const auto file = directory.write("metrics", exposition);
  const auto checked =
      run_to_end({"/bin/sh", "-c", "exec \"$0\" check metrics <\"$1\"", MAILROOM_PROMTOOL, file}, {});
  INFO(checked.output << checked.errors);
  CHECK(checked.status == 0);
  CHECK(checked.errors.empty());
}

}  // namespace mailroom::test
