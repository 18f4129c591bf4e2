#pragma once

#include "bench/line_sink.hpp"
#include "bench/row.hpp"
#include "support/subprocess.hpp"

namespace mailroom::bench {

/// How tokens come while their way to the consumer is timed.
struct Arrivals {
  double rate = 0;  ///< a second, whatever the consumer does; 0: each only when the one before has come out
  int clients = 1;
  double seconds = 3;
};

/// What is timed: from the server's time of the commit until the consumer's line has been read from its pipe.
struct Consumer {
  std::string database;
  std::function<Process::Setup()> setup;  ///< its standard output goes into the pipe
  std::function<bool()> is_ready;         ///< it waits for work
  /// Binds an account's id; its first column is the transaction's id as text.
  std::string insert =
      "INSERT INTO tokens (account, action) VALUES ($1, 'activation') RETURNING pg_current_xact_id()::text";
};

/// p50, p99, p99.9 and worst in ms, and for an open loop the commits a second that were reached. Throws
/// std::runtime_error when a token does not come out.
Figures measure_latency(Stage& stage, const Consumer& consumer, const Arrivals& arrivals);

}  // namespace mailroom::bench
