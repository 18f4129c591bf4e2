#pragma once

#include <string>
#include <vector>

#include "support/finished_run.hpp"
#include "support/http_client.hpp"

namespace mailroom::test {

/// Fails the test unless promtool finds nothing to complain about in `exposition`.
void check_metrics(const std::string& exposition);

/// Runs promtool.
FinishedRun promtool(std::vector<std::string> words);

}  // namespace mailroom::test
