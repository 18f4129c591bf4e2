// mailroom status --sizes: what the tables take, how fast they grow, and what prune would free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/command.hpp"
#include "prune/pruner.hpp"
#include "status/table_sizes.hpp"

namespace mailroom::cmd {

/// What prune would remove, or has removed. It counts no attachments: `old_attachments` are those that it may
/// remove.
struct Prunable {
  prune::PruneSummary summary;
  std::int64_t old_attachments = 0;

  /// The rows of `table` that lose all that they have, or the most of it.
  std::int64_t rows_of(const std::string& table) const;
};

/// The tables, and below them the growth and what prune would remove now.
std::string render_sizes(const std::vector<status::TableSize>& sizes, const Prunable& prunable,
                         std::size_t width);
std::string sizes_json(const std::vector<status::TableSize>& sizes, const Prunable& prunable);

/// After prune: the tables with free space for new rows, of 1 MB or more, and the statement that gives it
/// back to the disk. `sizes` are of before, `schema` is quoted. Empty if there is none.
std::string render_free_space(const std::vector<status::TableSize>& sizes, const Prunable& pruned,
                              const std::string& schema);

/// `8.2 MB`, in steps of 1,024 as PostgreSQL counts.
std::string size_text(std::int64_t bytes);

ExitCode run_sizes(bool json, Context& context);

}  // namespace mailroom::cmd
