#pragma once

#include "bench/latency.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {

/// The job of account g, as arguments of json_build_object.
std::string job_payload(const std::string& account);

/// A consumer creates this file when it is ready.
std::string ready_file(const Stage& stage);

/// Runs `command` on `database`, with the path of the ready file in its environment.
Process::Setup rival_program(const Stage& stage, const std::string& database,
                             std::vector<std::string> command);

/// Measures how `setup` drains `jobs` jobs. The program creates the ready file when it starts, and exits when
/// it has handled them.
Figures measure_rival_drain(Stage& stage, Process::Setup setup, std::int64_t jobs);

/// PgQ, whose consumer is this same program.
std::vector<Row> pgq_rows();
/// graphile-worker and pg-boss, from `directory`, where npm has installed them.
std::vector<Row> node_rows(const std::string& directory);

/// Runs this program as PgQ's consumer: handles BENCH_JOBS events, or runs until SIGTERM.
int run_pgq_consumer();

}  // namespace mailroom::bench
