// The numbers of prune are those of its dry run; their bytes are estimated from the mean size of a row.

#include "cmd/status/status_sizes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/wording.hpp"
#include "cmd/terminal/text_table.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::cmd {
namespace {

constexpr int step_of_count = 1000;

struct Sums {
  std::int64_t total = 0;
  std::int64_t last_day = 0;   ///< bytes
  std::int64_t last_week = 0;  ///< bytes
  std::int64_t prunable = 0;   ///< bytes
};

Sums sums_of(const std::vector<status::TableSize>& sizes, const Prunable& prunable) {
  Sums sums;
  for (const auto& table : sizes) {
    sums.total += table.total();
    sums.last_day += table.bytes_of(table.last_day.value_or(0));
    sums.last_week += table.bytes_of(table.last_week.value_or(0));
    sums.prunable += table.bytes_of(prunable.rows_of(table.name));
  }
  return sums;
}

std::string rows_text(const std::optional<std::int64_t>& rows) {
  return rows ? with_thousands(*rows) : "";
}

std::string estimate(const std::string& text) {
  return "~" + text;
}

/// `2,000 tokens, 3 messages, the content of 5 messages and up to 4 attachments, …`
std::string removed_text(const Prunable& prunable) {
  const auto& summary = prunable.summary;
  auto text = counted(summary.tokens, "token") + ", " + counted(summary.messages, "message");
  if (summary.contents > 0) text += fmt::format(", the content of {}", counted(summary.contents, "message"));
  if (const auto attachments = prunable.rows_of("mailroom_attachments"); attachments > 0)
    text += ", up to " + counted(attachments, "attachment");
  return fmt::format("{}, {} and {}", text, counted(summary.batches, "batch record"),
                     counted(summary.deliveries, "delivery record"));
}

nlohmann::ordered_json table_json(const status::TableSize& table, const Prunable& prunable) {
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
          {"prunable_rows", prunable.rows_of(table.name)}};
}

}  // namespace

std::int64_t Prunable::rows_of(const std::string& table) const {
  if (table == "tokens") return summary.tokens;
  if (table == "mailroom_messages") return summary.messages + summary.contents;
  if (table == "mailroom_batches") return summary.batches;
  if (table == "mailroom_deliveries") return summary.deliveries;
  const bool has_content = summary.messages + summary.contents > 0 && !summary.keeps_contents;
  return table == "mailroom_attachments" && has_content ? old_attachments : 0;
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

std::string render_sizes(const std::vector<status::TableSize>& sizes, const Prunable& prunable,
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
    table.add({each.name, size_text(each.bytes), size_text(each.index_bytes),
               estimate(with_thousands(each.rows)), estimate(with_thousands(each.dead_rows)),
               rows_text(each.last_day), rows_text(each.last_week)});
  }
  const auto sums = sums_of(sizes, prunable);
  return fmt::format(
      "{}\ntotal: {}\ngrowth: ~{} in the last day, ~{} in the last week\n"
      "mailroom prune would remove: {}: ~{}, which new rows fill\n"
      "~ marks an estimate, by the server's statistics and the mean size of a row\n",
      table.render(width), size_text(sums.total), size_text(sums.last_day), size_text(sums.last_week),
      removed_text(prunable), size_text(sums.prunable));
}

std::string render_free_space(const std::vector<status::TableSize>& sizes, const Prunable& pruned,
                              const std::string& schema) {
  constexpr std::int64_t much = 1024 * 1024;
  std::string tables;
  std::string names;
  for (const auto& table : sizes) {
    const auto bytes = table.bytes_of(pruned.rows_of(table.name));
    if (bytes < much) continue;
    const auto* separator = names.empty() ? "" : ", ";
    tables += fmt::format("{}{} ~{}", separator, table.name, size_text(bytes));
    names += fmt::format("{}{}.{}", separator, schema, table.name);
  }
  if (names.empty()) return "";
  return fmt::format(
      "free space in the files, which new rows fill once a vacuum has passed: {}\n"
      "this gives it back to the disk, and locks each table meanwhile, so that nothing is inserted or mailed:\n"
      "  VACUUM FULL {};\n",
      tables, names);
}

std::string sizes_json(const std::vector<status::TableSize>& sizes, const Prunable& prunable) {
  auto tables = nlohmann::ordered_json::array();
  for (const auto& each : sizes)
    tables.push_back(table_json(each, prunable));
  const auto sums = sums_of(sizes, prunable);
  return json_text(nlohmann::ordered_json{
             {"tables", std::move(tables)},
             {"bytes", sums.total},
             {"bytes_last_day", sums.last_day},
             {"bytes_last_week", sums.last_week},
             {"prunable_bytes", sums.prunable},
             {"estimated", {"rows", "dead_rows", "bytes_last_day", "bytes_last_week", "prunable_bytes"}},
             {"prune_before", moment_text(prunable.summary.before)}}) +
         "\n";
}

ExitCode run_sizes(bool json, Context& context) {
  const auto connection = context.connect_to_schema("status");
  const auto ages = prune::prune_ages(context.settings());
  Prunable prunable;
  const auto sizes = connection->transact([&](pqxx::work& transaction) {
    auto read = status::read_table_sizes(transaction);
    status::count_growth(transaction, read);
    prunable.old_attachments = status::count_old_attachments(transaction, ages.contents);
    return read;
  });
  process::StopSignal stop;
  // Its session ends with this command.
  prune::Pruner pruner(*connection, ages, step_of_count);
  prunable.summary = pruner.count([&](const prune::PruneProgress&) { return !stop.requested(); });
  context.print(json ? sizes_json(sizes, prunable) : render_sizes(sizes, prunable, context.out().width()));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
