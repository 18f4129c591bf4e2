#pragma once

#include "bench/databases.hpp"

namespace mailroom::bench {

/// What the rows of `collect --exec` and `--to` hand over: tokens of the plain backlog, in lines of ten.
struct Handover {
  Backlog backlog;
  std::int64_t lines = 0;
  std::string file;  ///< the same lines, for the programs that they are compared with
};

Handover prepare_handover(Stage& stage);

/// `collect --once` of these tokens, which wait again, without records.
Process::Setup handover_collector(Stage& stage, const Handover& handover, std::vector<std::string> options);

/// Throws std::runtime_error unless each of the tokens is recorded as accepted.
void require_accepted(Stage& stage, const Handover& handover);

}  // namespace mailroom::bench
