#pragma once

#include "bench/latency.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {

/// What a job of account g holds, as arguments of json_build_object.
std::string job_payload(const std::string& account);

/// A consumer says that it is ready by making this file.
std::string ready_file(const Stage& stage);

/// `command` on `database`, told where to say that it is ready.
Process::Setup rival_program(const Stage& stage, const std::string& database,
                             std::vector<std::string> command);

/// A drain of `jobs` jobs by `setup`, a program that says when it begins and ends when it has handled them.
Figures measure_rival_drain(Stage& stage, Process::Setup setup, std::int64_t jobs);

/// PgQ, whose consumer is this very program.
std::vector<Row> pgq_rows();
/// graphile-worker and pg-boss, from `folder`, where npm has installed them.
std::vector<Row> node_rows(const std::string& folder);

/// The program's other role: handles PgQ's events, BENCH_JOBS of them or until SIGTERM.
int run_pgq_consumer();

}  // namespace mailroom::bench
