#pragma once

#include <fmt/format.h>
#include <string>
#include <vector>

#include "db/array_text.hpp"
#include "db/connection.hpp"
#include "feed/event.hpp"
#include "feed/id_run.hpp"

namespace mailroom {

/// Rows that are held at a time.
constexpr int page_size = 20'000;

/// Calls `each` with every row of `query`, any number of them in little memory: through a cursor, within the
/// caller's transaction.
template <typename Each, typename... Arguments>
void stream_rows(pqxx::work& transaction, const std::string& query, const Each& each,
                 const Arguments&... arguments) {
  Connection::execute(transaction, "DECLARE rows NO SCROLL CURSOR FOR " + query, arguments...);
  const auto fetch = fmt::format("FETCH {} FROM rows", page_size);
  for (;;) {
    const auto rows = Connection::execute(transaction, fetch);
    for (const auto& row : rows)
      each(row);
    if (rows.size() < page_size) break;
  }
  Connection::execute(transaction, "CLOSE rows");
}

/// Calls `each` with every row whose id, its first column, lies in `ranges`. `query` takes the first ids of
/// the ranges, the last ids, and a limit, and gives rows in ascending order of ids.
template <typename Each>
void read_ranges(pqxx::work& transaction, const std::string& query, std::vector<IdRun> ranges,
                 const Each& each) {
  std::int64_t last = 0;
  while (!ranges.empty()) {
    std::vector<std::int64_t> firsts;
    std::vector<std::int64_t> lasts;
    for (const auto& range : ranges) {
      firsts.push_back(range.first);
      lasts.push_back(range.last);
    }
    const auto rows =
        Connection::execute(transaction, query, array_text(firsts), array_text(lasts), page_size);
    for (const auto& row : rows) {
      const auto id = row[0].template as<std::int64_t>();
      if (id <= last) throw std::logic_error("ids do not come in ascending order");
      last = id;
      each(row);
    }
    if (rows.size() < page_size) return;
    // What lies behind the last one that was read.
    std::vector<IdRun> rest;
    for (const auto& range : ranges) {
      if (range.last > last) rest.push_back({std::max(range.first, last + 1), range.last});
    }
    ranges = std::move(rest);
  }
}

}  // namespace mailroom
