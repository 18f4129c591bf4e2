// Reads the database; a schema that does not fit is a part of the reading. Names and explains the metrics of
// pending tokens, batches, gaps, deliveries, rules, problems and sinks.

#include "metrics/database_metrics.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/migration.hpp"

namespace mailroom::metrics {
namespace {

using Seconds = std::chrono::duration<double>;

double seconds(Milliseconds duration) {
  return Seconds(duration).count();
}

/// The name of a program without host and process: `psql`, `mailroom collect`.
std::string program_of(const status::ServerSession& session) {
  const auto& name = session.application;
  return name.starts_with("mailroom ") ? name.substr(0, name.find('@')) : name;
}

void add_pending(const status::QueueStatus& status, MetricFamilies& metrics) {
  for (const auto& [outcome, tokens] : status.pending.by_outcome()) {
    metrics.gauge("mailroom_queue_pending_tokens",
                  "Due tokens that are not acknowledged, by what became of them so far.",
                  {{"queue", status.queue}, {"outcome", fate::outcome_name(outcome)}},
                  static_cast<double>(tokens));
  }
  metrics.gauge("mailroom_queue_pending_estimated",
                "1 if so many tokens are pending that they are estimated.", {{"queue", status.queue}},
                status.pending.estimated ? 1 : 0);
  metrics.gauge("mailroom_queue_oldest_age_seconds",
                "How long the oldest due token has waited, deferred ones too; 0 if none waits.",
                {{"queue", status.queue}}, seconds(status.lag().value_or(Milliseconds(0))));
  metrics.gauge("mailroom_queue_expired_tokens",
                "Tokens that expired within the last hour, and were neither emitted nor accepted.",
                {{"queue", status.queue}}, static_cast<double>(status.expired.tokens));
  metrics.gauge("mailroom_queue_expiring_tokens",
                "Tokens that will expire before their turn, at least, at the rate of the queue.",
                {{"queue", status.queue}},
                static_cast<double>(health::forecast_expiring(status).value_or(0)));
  metrics.gauge("mailroom_queue_recently_emitted_tokens",
                "Tokens that were acknowledged in the last five minutes, by all consumers.",
                {{"queue", status.queue}}, static_cast<double>(status.emissions.total()));
}

void add_batches(const status::QueueStatus& status, MetricFamilies& metrics) {
  const MetricLabels labels{{"queue", status.queue}};
  const auto& open = status.open_batches;
  metrics.gauge("mailroom_queue_open_batches", "Batches that are leased and not acknowledged.", labels,
                static_cast<double>(open.size()));
  const auto lost =
      std::count_if(open.begin(), open.end(), [](const auto& batch) { return !batch.session_lives; });
  // Collectors are not visible on a standby.
  metrics.gauge("mailroom_queue_abandoned_batches",
                "Batches whose consumer has gone, until another one takes them over.", labels,
                status.on_standby ? 0 : static_cast<double>(lost));
  Milliseconds oldest{};
  for (const auto& batch : open)
    oldest = std::max(oldest, batch.age);
  metrics.gauge("mailroom_queue_oldest_batch_age_seconds",
                "How long the oldest open batch has been leased; 0 if there is none.", labels,
                seconds(oldest));
  metrics.gauge("mailroom_queue_dead_batches",
                "Batches that were given up within a day, after too many attempts.", labels,
                static_cast<double>(status.dead.size()));
}

void add_gaps(const status::QueueStatus& status, MetricFamilies& metrics) {
  metrics.gauge("mailroom_queue_gap_ids", "Ids below the cursor that open transactions may still show.",
                {{"queue", status.queue}}, static_cast<double>(status.gap_ids));
  constexpr auto holders = "mailroom_queue_gap_holders";
  constexpr auto holders_help =
      "Open transactions for whose tokens a gap waits; visible is false without the privileges of pg_monitor.";
  constexpr auto age = "mailroom_queue_gap_holder_age_seconds";
  constexpr auto age_help = "How long the oldest of these transactions has been open, where it is visible.";
  metrics.gauge(holders, holders_help);
  metrics.gauge(age, age_help);
  std::map<MetricLabels, std::pair<int, Milliseconds>> found;
  for (const auto& holder : status.gap_holders) {
    if (!holder.writes_tokens) continue;
    const auto& session = holder.session;
    const bool is_prepared = session.pid == 0;
    auto& [count, oldest] =
        found[{{"queue", status.queue},
               {"user", session.user},
               {"application", is_prepared ? "prepared transaction" : program_of(session)},
               {"visible", session.readable ? "true" : "false"}}];
    ++count;
    oldest = std::max(oldest, session.transaction_age.value_or(Milliseconds(0)));
  }
  for (const auto& [labels, holder] : found) {
    metrics.gauge(holders, holders_help, labels, holder.first);
    if (labels.back().second == "true")
      metrics.gauge(age, age_help, {labels.begin(), labels.end() - 1}, seconds(holder.second));
  }
}

void add_deliveries(const status::QueueStatus& status, MetricFamilies& metrics) {
  for (const auto outcome : fate::delivery_outcomes) {
    metrics.gauge("mailroom_queue_deliveries",
                  "Tokens whose last outcome was recorded within an hour, by that outcome.",
                  {{"queue", status.queue}, {"outcome", fate::outcome_name(outcome)}},
                  static_cast<double>(status.deliveries.count_last_hour(outcome)));
  }
  metrics.gauge("mailroom_queue_perhaps_twice",
                "Tokens whose last outcome was recorded within an hour, and that were perhaps taken twice.",
                {{"queue", status.queue}}, static_cast<double>(status.deliveries.perhaps_twice));
}

void add_came_back(const status::QueueStatus& status, MetricFamilies& metrics) {
  const auto& reports = status.came_back;
  if (!reports.is_known) return;
  const auto add = [&](const char* kind, std::int64_t count) {
    metrics.gauge("mailroom_queue_reports",
                  "What came back within an hour of mails that had been accepted, by kind.",
                  {{"queue", status.queue}, {"kind", kind}}, static_cast<double>(count));
  };
  add("hard", reports.hard);
  add("other", reports.bounced);
  add("complaint", reports.complaints);
  add("unsubscribed", reports.unsubscribed);
  add("delivered", reports.delivered);
  metrics.gauge("mailroom_reports_unmatched",
                "Reports read within an hour that are of no mail that is known, or are not understood.", {},
                static_cast<double>(reports.unmatched));
}

void add_pause_and_rates(const status::QueueStatus& status, MetricFamilies& metrics) {
  metrics.gauge("mailroom_queue_paused", "1 while the queue is paused.", {{"queue", status.queue}},
                status.record.pause ? 1 : 0);
  constexpr auto left = "mailroom_queue_rate_left_tokens";
  constexpr auto left_help = "Tokens that a rate of the queue allows at once now.";
  constexpr auto rate = "mailroom_queue_rate_tokens_per_second";
  constexpr auto rate_help = "A rate that the queue keeps.";
  metrics.gauge(left, left_help);
  metrics.gauge(rate, rate_help);
  for (const auto& budget : status.record.budgets) {
    const MetricLabels labels{{"queue", status.queue}, {"budget", budget.name}};
    metrics.gauge(left, left_help, labels, static_cast<double>(budget.left()));
    metrics.gauge(rate, rate_help, labels, 1 / budget.paced.rate.gap().count());
  }
}

void add_problems(const QueueReading& reading, MetricFamilies& metrics) {
  constexpr auto name = "mailroom_queue_problems";
  constexpr auto help = "Problems that mailroom status finds, by their code; none has no value.";
  metrics.gauge(name, help);
  std::map<MetricLabels, int> found;
  for (const auto& finding : reading.findings) {
    ++found[{{"queue", reading.status.queue},
             {"code", finding.code},
             {"severity", health::severity_name(finding.severity)}}];
  }
  for (const auto& [labels, count] : found)
    metrics.gauge(name, help, labels, count);
}

/// The schedule is shared by all queues.
void add_schedule(const DatabaseReading& reading, MetricFamilies& metrics) {
  if (reading.queues.empty()) return;
  const auto& status = reading.queues.front().status;
  if (!status.scheduled.is_known) return;
  metrics.gauge("mailroom_scheduled_messages",
                "Messages whose time has not come, or that nobody has released since.", {},
                static_cast<double>(status.scheduled.messages));
  metrics.gauge("mailroom_schedule_overdue_seconds",
                "How long the first scheduled message is overdue; 0 if none is.", {},
                seconds(status.scheduled.overdue(status.now)));
}

void add_asked(const messages::RecentRoles& asked, MetricFamilies& metrics) {
  constexpr auto mails = "mailroom_asked_messages";
  constexpr auto mails_help = "Messages that a role asked for within an hour, of the newest 100,000.";
  constexpr auto recipients = "mailroom_asked_recipients";
  constexpr auto recipients_help = "The recipients of these messages.";
  metrics.gauge(mails, mails_help);
  metrics.gauge(recipients, recipients_help);
  for (const auto& each : asked.roles) {
    metrics.gauge(mails, mails_help, {{"role", each.role}}, static_cast<double>(each.all.messages));
    metrics.gauge(recipients, recipients_help, {{"role", each.role}},
                  static_cast<double>(each.all.recipients));
  }
}

/// Sinks are shared by all queues.
void add_sinks(const DatabaseReading& reading, MetricFamilies& metrics) {
  constexpr auto name = "mailroom_sink_unavailable_seconds";
  constexpr auto help = "How long a sink has taken nothing; a sink that works has no value.";
  metrics.gauge(name, help);
  if (reading.queues.empty()) return;
  for (const auto& sink : reading.queues.front().status.deliveries.sinks)
    metrics.gauge(name, help, {{"sink", sink.name}}, seconds(sink.lasts));
}

void add_sizes(const std::vector<status::TableSize>& sizes, MetricFamilies& metrics) {
  for (const auto& table : sizes) {
    const MetricLabels labels{{"table", table.name}};
    metrics.gauge("mailroom_table_bytes", "What a table takes on disk, without its indexes.", labels,
                  static_cast<double>(table.bytes));
    metrics.gauge("mailroom_table_index_bytes", "What the indexes of a table take on disk.", labels,
                  static_cast<double>(table.index_bytes));
    metrics.gauge("mailroom_table_rows", "Rows of a table, by the server's statistics.", labels,
                  static_cast<double>(table.rows));
    metrics.gauge(
        "mailroom_table_dead_rows",
        "Deleted or replaced rows of a table that no vacuum has removed, by the server's statistics.", labels,
        static_cast<double>(table.dead_rows));
  }
}

std::optional<Error> why_schema_does_not_fit(db::Connection& connection) {
  try {
    schema::require_current_schema(connection);
  } catch (const Error& error) {
    if (error.code() != ExitCode::schema) throw;
    return error;
  }
  return std::nullopt;
}

}  // namespace

DatabaseReading read_database(db::Connection& connection,
                              const std::function<std::vector<std::string>(db::Connection&)>& queues,
                              const health::HealthLimits& limits) {
  const auto began = steady_now();
  const auto schema = schema::read_schema_state(connection);
  DatabaseReading reading{.schema_version = schema.version.value_or(0),
                          .schema_is_dirty = schema.dirty,
                          .newest_schema_version = schema::embedded_migrations().back().version,
                          .schema_error = why_schema_does_not_fit(connection)};
  const auto names = reading.schema_error ? std::vector<std::string>() : queues(connection);
  for (const auto& queue : names) {
    try {
      auto status = status::read_queue_status(connection, queue);
      auto findings = health::judge_queue(status, limits);
      reading.queues.push_back({std::move(status), std::move(findings)});
    } catch (const db::DatabaseError& error) {
      if (error.sqlstate() != db::sqlstate::unknown_queue) throw;
    }
  }
  if (!reading.schema_error) {
    reading.asked = messages::read_recent_roles(connection);
    connection.transact([&](pqxx::work& transaction) {
      reading.sizes = status::read_table_sizes(transaction);
      reading.oldest_token = status::read_oldest_age(transaction);
    });
  }
  reading.took = steady_now() - began;
  return reading;
}

MetricFamilies database_metrics(const DatabaseReading& reading) {
  MetricFamilies metrics;
  metrics.gauge("mailroom_database_up", "1 if the database could be read for these metrics.", {},
                reading.is_up() ? 1 : 0);
  if (!reading.is_up()) return metrics;
  metrics.gauge("mailroom_database_reading_seconds",
                "How long it took to read the database for these metrics.", {}, reading.took.count());
  metrics.gauge("mailroom_schema_version", "Version of the schema.", {},
                static_cast<double>(reading.schema_version));
  metrics.gauge("mailroom_schema_newest_version",
                "The newest version of the schema that this mailroom knows.", {},
                static_cast<double>(reading.newest_schema_version));
  metrics.gauge("mailroom_schema_dirty", "1 if a migration has failed in the middle.", {},
                reading.schema_is_dirty ? 1 : 0);
  for (const auto& queue : reading.queues) {
    const auto& status = queue.status;
    add_pending(status, metrics);
    metrics.gauge("mailroom_queue_consumers", "Connected consumers of the queue; not visible on a standby.",
                  {{"queue", status.queue}}, static_cast<double>(status.collectors.size()));
    add_batches(status, metrics);
    add_gaps(status, metrics);
    add_deliveries(status, metrics);
    add_came_back(status, metrics);
    add_pause_and_rates(status, metrics);
    add_problems(queue, metrics);
  }
  add_schedule(reading, metrics);
  add_asked(reading.asked, metrics);
  add_sinks(reading, metrics);
  add_sizes(reading.sizes, metrics);
  if (reading.oldest_token)
    metrics.gauge("mailroom_oldest_token_age_seconds",
                  "How long ago the oldest token was created, by its id.", {},
                  seconds(*reading.oldest_token));
  return metrics;
}

}  // namespace mailroom::metrics
