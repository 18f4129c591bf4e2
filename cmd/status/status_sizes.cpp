// The numbers of prune are those of its dry run; their bytes are estimated from the mean size of a row.

#include "cmd/status/status_sizes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cmd/terminal/text_table.hpp"
#include "process/stop_signal.hpp"
#include "schema/schema_objects.hpp"

namespace mailroom {
namespace {

constexpr int step_of_count = 1000;

/// The rows of `table` that prune would remove.
std::int64_t prunable_rows(const std::string& table, const PruneSummary& prunable) {
  if (table == "tokens") return prunable.tokens;
  if (table == "mailroom_messages") return prunable.messages;
  if (table == "mailroom_batches") return prunable.batches;
  return table == "mailroom_deliveries" ? prunable.deliveries : 0;
}

struct Sums {
  std::int64_t total = 0;
  std::int64_t last_day = 0;   ///< bytes
  std::int64_t last_week = 0;  ///< bytes
  std::int64_t prunable = 0;   ///< bytes
};

Sums sums_of(const std::vector<TableSize>& sizes, const PruneSummary& prunable) {
  Sums sums;
  for (const auto& table : sizes) {
    sums.total += table.total();
    sums.last_day += table.bytes_of(table.last_day.value_or(0));
    sums.last_week += table.bytes_of(table.last_week.value_or(0));
    sums.prunable += table.bytes_of(prunable_rows(table.name, prunable));
  }
  return sums;
}

std::string rows_text(const std::optional<std::int64_t>& rows) {
  return rows ? with_thousands(*rows) : "";
}

nlohmann::ordered_json table_json(const TableSize& table, const PruneSummary& prunable) {
  const auto rows = [](const std::optional<std::int64_t>& count) {
    return count ? nlohmann::ordered_json(*count) : nlohmann::ordered_json();
  };
  return {{"table", table.name},
          {"bytes", table.bytes},
          {"index_bytes", table.index_bytes},
          {"rows", table.rows},
          {"dead_rows", table.dead_rows},
          {"rows_last_day", rows(table.last_day)},
          {"rows_last_week", rows(table.last_week)},
          {"prunable_rows", prunable_rows(table.name, prunable)}};
}

}  // namespace

std::int64_t prunable_bytes(const std::vector<TableSize>& sizes, const PruneSummary& prunable) {
  return sums_of(sizes, prunable).prunable;
}

std::string size_text(std::int64_t bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1000 && unit + 1 < units.size(); ++unit)
    size /= 1024;
  return unit == 0 || size >= 10 ? fmt::format("{:.0f} {}", size, units.at(unit))
                                 : fmt::format("{:.1f} {}", size, units.at(unit));
}

std::string render_sizes(const std::vector<TableSize>& sizes, const PruneSummary& prunable,
                         std::size_t width) {
  using Align = TextTable::Align;
  TextTable table({{"table"},
                   {"size", Align::right},
                   {"indexes", Align::right},
                   {"rows", Align::right},
                   {"dead", Align::right},
                   {"last day", Align::right},
                   {"last week", Align::right}});
  for (const auto& each : sizes) {
    table.add({each.name, size_text(each.bytes), size_text(each.index_bytes), with_thousands(each.rows),
               with_thousands(each.dead_rows), rows_text(each.last_day), rows_text(each.last_week)});
  }
  const auto sums = sums_of(sizes, prunable);
  return fmt::format(
      "{}\ntotal: {}\ngrowth: about {} in the last day, {} in the last week\n"
      "mailroom prune would remove: {}, {}, {} and {}, about {}, which new rows fill\n",
      table.render(width), size_text(sums.total), size_text(sums.last_day), size_text(sums.last_week),
      counted(prunable.tokens, "token"), counted(prunable.messages, "message"),
      counted(prunable.batches, "batch record"), counted(prunable.deliveries, "delivery record"),
      size_text(sums.prunable));
}

std::string sizes_json(const std::vector<TableSize>& sizes, const PruneSummary& prunable) {
  auto tables = nlohmann::ordered_json::array();
  for (const auto& each : sizes)
    tables.push_back(table_json(each, prunable));
  const auto sums = sums_of(sizes, prunable);
  return json_text(nlohmann::ordered_json{{"tables", std::move(tables)},
                                          {"bytes", sums.total},
                                          {"bytes_last_day", sums.last_day},
                                          {"bytes_last_week", sums.last_week},
                                          {"prunable_bytes", sums.prunable},
                                          {"prune_before", moment_text(prunable.before)}}) +
         "\n";
}

ExitCode run_sizes(bool json, Context& context) {
  const auto connection = context.connect_to_schema("status");
  const auto sizes = connection->transact([](pqxx::work& transaction) {
    auto read = read_table_sizes(transaction);
    count_growth(transaction, read);
    return read;
  });
  StopSignal stop;
  // Its session ends with this command.
  Pruner pruner(*connection, prune_ages(context.settings()), step_of_count);
  const auto prunable = pruner.count([&](const PruneProgress&) { return !stop.requested(); });
  context.print(json ? sizes_json(sizes, prunable) : render_sizes(sizes, prunable, context.out().width()));
  return ExitCode::done;
}

}  // namespace mailroom
