// What the tables of mailroom take on disk, and how fast they grow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom::status {

struct TableSize {
  std::string name;
  std::int64_t bytes = 0;  ///< of the table with its long values, without indexes
  std::int64_t index_bytes = 0;
  std::int64_t rows = 0;       ///< as the server's statistics count them
  std::int64_t dead_rows = 0;  ///< of these, deleted or replaced ones that no vacuum has removed
  // Of the tables that grow with the tokens:
  std::optional<std::int64_t> last_day{};   ///< rows that were added within a day
  std::optional<std::int64_t> last_week{};  ///< and within seven days

  std::int64_t total() const { return bytes + index_bytes; }
  /// How many bytes that many of its rows take, with their part of the indexes and of dead rows.
  std::int64_t bytes_of(std::int64_t some) const;
};

/// The sizes of all tables, largest first. Cheap: the server looks at its files. Within the caller's
/// transaction.
std::vector<TableSize> read_table_sizes(pqxx::transaction_base& transaction);

/// How long ago the oldest token was created, by its id; nullopt without tokens. What nobody prunes grows
/// old.
std::optional<std::chrono::seconds> read_oldest_age(pqxx::transaction_base& transaction);

/// The attachments of messages that were asked for so long ago or earlier. Reads these rows.
std::int64_t count_old_attachments(pqxx::transaction_base& transaction, Milliseconds age);

/// Counts the rows of the last week of tokens, messages, attachments, batches and deliveries. Reads these
/// rows.
void count_growth(pqxx::transaction_base& transaction, std::vector<TableSize>& sizes);

}  // namespace mailroom::status
