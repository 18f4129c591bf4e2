// Reads jobs, mailroom_queues and mailroom_budgets without a lock.

#include "queue/queue_definition.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "db/values.hpp"

namespace mailroom::queue {
namespace {

/// A budget `b` as budgets_of() reads it, without a lock.
constexpr const char* budget_sql = R"(jsonb_build_object(
  'name', b.name, 'tokens', b.tokens, 'period_ms', (extract(epoch FROM b.period) * 1000)::bigint, 'burst', b.burst,
  'ahead', extract(epoch FROM greatest(b.taken_until, statement_timestamp()) - statement_timestamp())::double precision))";

// $1: the names, as a JSON array; null for all.
const std::string queues_sql = fmt::format(R"(
SELECT j.job_type, s.cursor, mailroom_queue_definition(j.job_type) AS definition, {} AS paused_us,
  greatest((extract(epoch FROM clock_timestamp() - q.paused_at) * 1000)::bigint, 0) AS paused_for_ms, q.paused_by, q.pause_reason,
  (SELECT jsonb_agg({} ORDER BY b.name) FROM mailroom_budgets b WHERE b.name = ANY (q.budgets)) AS budgets
FROM jobs j LEFT JOIN mailroom_queues q ON q.name = j.job_type, LATERAL mailroom_queue_state(j.job_type) s
WHERE q.dropped_at IS NULL AND ($1::jsonb IS NULL OR $1::jsonb ? j.job_type)
ORDER BY j.job_type)",
                                           db::microseconds_sql("q.paused_at"), budget_sql);

const std::string budgets_sql =
    fmt::format("SELECT jsonb_agg({} ORDER BY b.name) AS budgets FROM mailroom_budgets b", budget_sql);

constexpr const char* end_position_sql = R"(
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms, id AS newest FROM mailroom_last_drawn_token())";

std::vector<Budget> budgets_of(const db::Row& row) {
  std::vector<Budget> budgets;
  if (row.is_null("budgets")) return budgets;
  for (const auto& budget : parse_json(row.view("budgets"))) {
    const config::Rate rate{budget.at("tokens").get<int>(),
                            Milliseconds(budget.at("period_ms").get<std::int64_t>())};
    budgets.push_back({.name = budget.at("name").get<std::string>(),
                       .paced = {rate, budget.at("burst").get<int>()},
                       .ahead = std::chrono::duration<double>(budget.at("ahead").get<double>())});
  }
  return budgets;
}

QueueRecord record_of(const db::Row& row) {
  QueueRecord queue{.name = row.text("job_type"),
                    .cursor = row.number("cursor"),
                    .properties = properties_of(row.text("definition")),
                    .budgets = budgets_of(row)};
  if (const auto since = row.optional_moment<std::chrono::microseconds>("paused_us"))
    queue.pause = QueuePause{.since = *since,
                             .lasts = Milliseconds(row.number("paused_for_ms")),
                             .actor = row.text("paused_by"),
                             .reason = row.text("pause_reason")};
  return queue;
}

std::vector<QueueRecord> read_records_of(pqxx::transaction_base& transaction,
                                         const std::optional<std::string>& names) {
  std::vector<QueueRecord> records;
  for (const auto& row : db::Connection::execute(transaction, queues_sql, names))
    records.push_back(record_of(row));
  return records;
}

template <typename Records>
auto find_named(const Records& records, const std::string& name) -> decltype(&records.front()) {
  const auto found =
      std::find_if(records.begin(), records.end(), [&](const auto& record) { return record.name == name; });
  return found == records.end() ? nullptr : &*found;
}

}  // namespace

std::int64_t Budget::left() const {
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(paced.burst - ahead / paced.rate.gap())),
                                0);
}

Milliseconds Budget::wait_for(std::int64_t tokens) const {
  const auto spare = static_cast<double>(paced.burst - std::min<std::int64_t>(tokens, paced.burst));
  return std::max(std::chrono::ceil<Milliseconds>(ahead - paced.rate.gap() * spare), Milliseconds{0});
}

Milliseconds QueueRecord::wait_for(std::int64_t tokens) const {
  Milliseconds longest{0};
  for (const auto& budget : budgets)
    longest = std::max(longest, budget.wait_for(tokens));
  return longest;
}

const QueueRecord* QueueCatalogue::find_queue(const std::string& name) const {
  return find_named(queues, name);
}

const Budget* QueueCatalogue::find_budget(const std::string& name) const {
  return find_named(budgets, name);
}

std::vector<std::string> QueueCatalogue::shared_budgets() const {
  std::vector<std::string> names;
  for (const auto& budget : budgets) {
    if (find_queue(budget.name) == nullptr) names.push_back(budget.name);
  }
  return names;
}

std::vector<std::string> QueueCatalogue::sharers_of(const std::string& budget) const {
  std::vector<std::string> names;
  for (const auto& queue : queues) {
    if (queue.properties.budget == budget) names.push_back(queue.name);
  }
  return names;
}

QueueCatalogue read_queues_within(pqxx::transaction_base& transaction) {
  QueueCatalogue catalogue;
  const auto position = db::Connection::execute(transaction, end_position_sql)[0];
  catalogue.now = position.moment<Milliseconds>("now_ms");
  catalogue.newest = position.number("newest");
  catalogue.queues = read_records_of(transaction, std::nullopt);
  catalogue.budgets = budgets_of(db::Connection::execute(transaction, budgets_sql)[0]);
  catalogue.actions = read_actions_within(transaction);
  return catalogue;
}

QueueCatalogue read_queues(db::Connection& connection) {
  return connection.transact([](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    return read_queues_within(transaction);
  });
}

std::vector<QueueRecord> read_records(pqxx::transaction_base& transaction,
                                      const std::vector<std::string>& names) {
  return read_records_of(transaction, plain_json(nlohmann::json(names)));
}

std::vector<std::string> queue_names(db::Connection& connection) {
  return connection
      .run(R"(
SELECT j.job_type FROM jobs j
WHERE NOT EXISTS (SELECT FROM mailroom_queues q WHERE q.name = j.job_type AND q.dropped_at IS NOT NULL)
ORDER BY j.job_type)")
      .values<std::string>();
}

Error unknown_queue(const std::string& name, const std::vector<std::string>& names) {
  const auto meant = nearest_word(name, names);
  return {ExitCode::configuration, fmt::format("unknown queue \"{}\"", shown_text(name)),
          !meant.empty()  ? "did you mean: " + meant
          : names.empty() ? "there is no queue; mailroom queue create mailroom makes one"
                          : fmt::format("queues: {}", joined(names, ", "))};
}

const QueueRecord& require_queue(const QueueCatalogue& catalogue, const std::string& name) {
  if (const auto* queue = catalogue.find_queue(name)) return *queue;
  std::vector<std::string> names;
  for (const auto& queue : catalogue.queues)
    names.push_back(queue.name);
  throw unknown_queue(name, names);
}

}  // namespace mailroom::queue
