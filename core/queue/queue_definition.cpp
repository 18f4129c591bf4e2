// Reads jobs, mailroom_queues and mailroom_budgets without a lock.

#include "queue/queue_definition.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "db/values.hpp"

namespace mailroom::queue {
namespace {

const std::string queues_sql = fmt::format(R"(
SELECT j.job_type, s.cursor, mailroom_queue_definition(j.job_type) AS definition, {} AS paused_us, q.paused_by, q.pause_reason
FROM jobs j LEFT JOIN mailroom_queues q ON q.name = j.job_type, LATERAL mailroom_queue_state(j.job_type) s
WHERE q.dropped_at IS NULL
ORDER BY j.job_type)",
                                           db::microseconds_sql("q.paused_at"));

// What is left, and the wait, as mailroom_allowance computes them; but without a lock.
constexpr const char* budgets_sql = R"(
SELECT b.name, b.tokens, (extract(epoch FROM b.period) * 1000)::bigint AS period_ms, b.burst,
  greatest(floor(b.burst - s.ahead / s.gap), 0)::integer AS "left",
  ceil(greatest(s.ahead - (b.burst - 1) * s.gap, 0) * 1000)::bigint AS next_ms
FROM mailroom_budgets b, (SELECT clock_timestamp() AS now) clock,
  LATERAL (SELECT extract(epoch FROM b.period)::double precision / b.tokens AS gap,
                  extract(epoch FROM greatest(b.taken_until, clock.now) - clock.now)::double precision AS ahead) s
ORDER BY b.name)";

constexpr const char* end_position_sql = R"(
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms, id AS newest FROM mailroom_last_drawn_token())";

QueueRecord read_queue(const db::Row& row) {
  QueueRecord queue{.name = row.text("job_type"),
                    .cursor = row.number("cursor"),
                    .properties = properties_of(row.text("definition"))};
  if (const auto since = row.optional_moment<std::chrono::microseconds>("paused_us"))
    queue.pause =
        QueuePause{.since = *since, .actor = row.text("paused_by"), .reason = row.text("pause_reason")};
  return queue;
}

template <typename Records>
auto find_named(const Records& records, const std::string& name) -> decltype(&records.front()) {
  const auto found =
      std::find_if(records.begin(), records.end(), [&](const auto& record) { return record.name == name; });
  return found == records.end() ? nullptr : &*found;
}

}  // namespace

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
  for (const auto& row : db::Connection::execute(transaction, queues_sql))
    catalogue.queues.push_back(read_queue(row));
  for (const auto& row : db::Connection::execute(transaction, budgets_sql)) {
    catalogue.budgets.push_back({.name = row.text("name"),
                                 .paced = {{row.number<int>("tokens"), Milliseconds(row.number("period_ms"))},
                                           row.number<int>("burst")},
                                 .left = row.number<int>("left"),
                                 .next_in = Milliseconds(row.number("next_ms"))});
  }
  catalogue.actions = read_actions_within(transaction);
  return catalogue;
}

QueueCatalogue read_queues(db::Connection& connection) {
  return connection.transact([](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    return read_queues_within(transaction);
  });
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
