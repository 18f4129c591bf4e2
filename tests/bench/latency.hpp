#pragma once

#include "bench/line_sink.hpp"
#include "bench/row.hpp"
#include "support/subprocess.hpp"

namespace mailroom::bench {

/// How tokens are inserted while their latency is measured.
struct Arrivals {
  double rate = 0;  ///< per second; 0: insert each token after the previous one is read
  int clients = 1;
  double seconds = 3;
};

/// What is measured: the time from the server's commit timestamp until the consumer's line is read from its
/// pipe, or until a watcher notes it.
struct Consumer {
  std::string database;
  std::function<Process::Setup()> setup;  ///< its stdout is the pipe
  std::function<bool()> is_ready;         ///< true once it waits for work
  /// Called before setup() for a consumer that writes no lines: begins to note when each token comes out.
  std::function<void(ArrivalTimes&)> watch{};
  /// Takes an account's id as parameter; its first column is the transaction's id as text.
  std::string insert =
      "INSERT INTO tokens (account, action) VALUES ($1, 'activation') RETURNING pg_current_xact_id()::text";
  std::string only_action{};       ///< of the tokens that count; empty: all
  std::function<void()> at_end{};  ///< called when all tokens have come, while the consumer runs
};

/// p50, p99, p99.9 and maximum in ms, and for an open loop the commits per second that were reached. Throws
/// std::runtime_error when a token is not read.
Figures measure_latency(Stage& stage, const Consumer& consumer, const Arrivals& arrivals);

/// The commits per second that the inserts of `consumer` reach on that schedule while nobody consumes.
Figures measure_inserts(Stage& stage, const Consumer& consumer, const Arrivals& arrivals);

/// Runs this program as the consumer of tokens that does the least, until SIGTERM.
int run_bare_consumer();

}  // namespace mailroom::bench
