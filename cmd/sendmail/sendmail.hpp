// Runs mailroom sendmail with its arguments as they are: CLI11 knows options of one letter with a value
// behind them otherwise.
#pragma once

#include <string>
#include <vector>

#include "cmd/terminal/context.hpp"

namespace mailroom::cmd {

ExitCode run_sendmail(Context& context, const std::vector<std::string>& arguments);

}  // namespace mailroom::cmd
