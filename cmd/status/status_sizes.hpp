// mailroom status --sizes: what the tables take, how fast they grow, and what prune would free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/command.hpp"
#include "prune/pruner.hpp"
#include "status/table_sizes.hpp"

namespace mailroom {

/// The tables, and below them the growth and what prune would remove now.
std::string render_sizes(const std::vector<TableSize>& sizes, const PruneSummary& prunable,
                         std::size_t width);
std::string sizes_json(const std::vector<TableSize>& sizes, const PruneSummary& prunable);

/// What the rows that prune removed took, with their part of the indexes, by the mean size of a row.
std::int64_t prunable_bytes(const std::vector<TableSize>& sizes, const PruneSummary& prunable);

/// `8.2 MB`, in steps of 1,024 as PostgreSQL counts.
std::string size_text(std::int64_t bytes);

ExitCode run_sizes(bool json, Context& context);

}  // namespace mailroom
