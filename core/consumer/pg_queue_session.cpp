// Prepares the statements with pinned plans, claims in a thread while it reads, and sorts notifications.

#include "consumer/pg_queue_session.hpp"

#include <utility>

#include "base/blocked_signals.hpp"
#include "base/clock.hpp"
#include "base/id_range.hpp"
#include "consumer/claim_rows.hpp"
#include "consumer/outcome_record.hpp"
#include "consumer/session_checks.hpp"
#include "db/array_text.hpp"
#include "db/pooler.hpp"
#include "db/storable_text.hpp"
#include "process/connect_until_stopped.hpp"

namespace mailroom {
namespace {

/// How long the last statement before a stop may take.
constexpr Milliseconds last_patience{500};

/// How long to wait for a second session while a batch is leased: a pooler may have no more to give.
constexpr Milliseconds reader_patience{2000};

/// How long a statement may take before the log says for whom it waits.
constexpr Milliseconds wait_patience{3000};

/// Payload of the notification that makes the other collectors drain the inserts that did not notify.
constexpr const char* drain_payload = "drain";
/// Payload of mailroom_share_sinks().
constexpr const char* sinks_payload = "sinks";
/// Payload of the functions that change the definition of a queue.
constexpr const char* queues_payload = "queues";

// The plans of the queue need these settings, besides those of every session.
constexpr const char* plan_settings = R"(
SET row_security = off;
SET plan_cache_mode = force_generic_plan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off)";

/// By this process's clock, so that the server can tell when by its own.
std::optional<std::int64_t> microseconds_since(const std::optional<TimePoint>& time) {
  if (!time) return std::nullopt;
  return std::chrono::floor<std::chrono::microseconds>(steady_now() - *time).count();
}

/// Publishes the fingerprint as a session lock: it ends with the session, and needs no row and no privilege.
/// If another session holds the lock exclusively, status does not show this key.
void show_fingerprint(Connection& connection, const std::string& fingerprint) {
  connection.run("SELECT pg_try_advisory_lock_shared(('x' || $1::text)::bit(64)::bigint)", fingerprint);
}

/// What runs ends by itself, or with the connection, if it cannot be cancelled.
void cancel_quietly(Connection& connection) {
  try {
    connection.cancel();
  } catch (const Error&) {
    return;
  }
}

}  // namespace

PgQueueSession::PgQueueSession(const Setup& setup)
    : watcher_(setup.watcher),
      log_(setup.log),
      target_(setup.conninfo),
      delivers_(setup.delivers),
      with_creation_(setup.with_creation),
      session_(connect(setup)),
      queues_(setup.queues),
      channel_(setup.channel) {
  const auto waiting = wait();
  watch_waits();
  require_own_session(connection_, setup.conninfo, setup.program);
  setup.check_schema(connection_);
  prepare_statements(setup);
  check_queue_preconditions(connection_);
  connection_.listen(channel_, Connection::Senders::others);
  for (const auto& queue : queues_)
    collector_ = connection_.run("SELECT mailroom_attach($1)", queue)[0][0].as<int>();
  if (!setup.fingerprint.empty()) show_fingerprint(connection_, setup.fingerprint);
}

std::unique_ptr<Connection> PgQueueSession::connect(const Setup& setup) {
  if (setup.watcher == nullptr) return std::make_unique<Connection>(setup.conninfo, setup.program);
  return connect_until_stopped(setup.watcher->signal(), setup.conninfo, setup.program);
}

void PgQueueSession::watch_waits() {
  if (log_ == nullptr) return;
  waits_.emplace(connection_,
                 WaitWatch::Options{.target = target_,
                                    .purpose = "mailroom watch",
                                    .tell = [log = log_](const std::string& text) { log->warn(text); },
                                    .patience = wait_patience,
                                    .over = [log = log_] { log->info("the wait is over"); }});
}

void PgQueueSession::prepare_statements(const Setup& setup) {
  connection_.run(plan_settings);
  connection_.prepare("claim", claim_sql());
  if (delivers_) {
    connection_.prepare("fetch", fetch_mails_sql(setup.reads_newer, setup.counted_period));
  } else {
    connection_.prepare("claim and fetch", claim_and_fetch_sql(with_creation_));
    connection_.prepare("fetch", fetch_sql(with_creation_));
  }
  connection_.prepare("idle cursor", "SELECT mailroom_idle_cursor FROM mailroom_idle_cursor($1)");
}

std::vector<QueueDefinition> PgQueueSession::definitions() {
  const auto waiting = wait();
  std::vector<QueueDefinition> definitions;
  for (const auto& row : connection_.run(R"(
SELECT name, priority, batch_limit, batch_timeout FROM mailroom_queues WHERE name = ANY ($1::text[]))",
                                         array_text(queues_))) {
    definitions.push_back({.name = row[0].c_str(),
                           .priority = row[1].as<int>(),
                           .batch_limit = row[2].c_str(),
                           .batch_timeout = row[3].c_str()});
  }
  return definitions;
}

PgQueueSession::~PgQueueSession() {
  if (!claiming_.valid()) return;
  cancel_quietly(connection_);
  claiming_.wait();
}

ClaimReply PgQueueSession::claim(const ClaimRequest& request) {
  // The last attempt does not wait long for a lock.
  const auto waiting = wait(request.without_lock ? last_patience : StopWatcher::moment);
  if (request.without_lock) return acknowledge_alone(*request.receipt);
  if (request.routine && !request.receipt) {
    const auto cursor = connection_.run_prepared("idle cursor", queue_of(request));
    if (!cursor.empty()) return keep({.reply = {.last = cursor[0][0].as<std::int64_t>()}});
  }
  return keep(take(request));
}

PgQueueSession::Claimed PgQueueSession::take(const ClaimRequest& request) {
  pqxx::result rows;
  try {
    rows = run_claim(delivers_ ? "claim" : "claim and fetch", request);
  } catch (const DatabaseError& error) {
    if (error.sqlstate() == sqlstate::query_cancelled || delivers_) throw;
    // A failed fetch must not roll back the claim, or the batch's attempts would not be counted.
    rows = run_claim("claim", request);
  }
  Claimed claimed{.reply = read_reply(rows[0], queue_of(request))};
  claimed.is_streamed = !delivers_ && claimed.reply.size >= streamed_size;
  if (claimed.reply.lease && has_tokens(rows) && !claimed.is_streamed) claimed.rows = rows;
  return claimed;
}

ClaimReply PgQueueSession::keep(Claimed claimed) {
  claimed_ = std::move(claimed);
  return claimed_.reply;
}

bool PgQueueSession::can_claim_ahead(const ClaimReply& reply) {
  return !delivers_ && reply.size >= streamed_size && open_reader();
}

bool PgQueueSession::open_reader() {
  if (reader_ || !may_open_reader_) return may_open_reader_;
  const auto waiting = wait();
  try {
    reader_ =
        std::make_unique<Connection>(target_, "mailroom read", SessionLimits{.answer = reader_patience});
    // This session is known to have a server process of its own; so has the other one.
    reader_->own_session();
    reader_->run(plan_settings);
  } catch (const Error& error) {
    reader_.reset();
    may_open_reader_ = false;
    if (log_ != nullptr) log_->info("no second session for large batches", {{"reason", error.what()}});
  }
  return may_open_reader_;
}

void PgQueueSession::begin_claim(const ClaimRequest& request) {
  batch_reader_.advance();
  const BlockedSignals blocked;
  claiming_ = std::async(std::launch::async, [this, request] {
    auto claimed = take(request);
    read_ahead(claimed);
    return claimed;
  });
}

void PgQueueSession::read_ahead(const Claimed& claimed) {
  if (!claimed.is_streamed) return;
  try {
    batch_reader_.read_ahead(connection_, *claimed.reply.lease, with_creation_);
  } catch (const Error& error) {
    // The claim is made all the same. What prevents the read meets fetch() too, which reads them again.
    if (log_ != nullptr) log_->debug("the tokens could not be read ahead", {{"reason", error.what()}});
  }
}

ClaimReply PgQueueSession::end_claim() {
  const auto waiting = wait();
  return keep(claiming_.get());
}

void PgQueueSession::work_in_both(const BatchReader::Work& work) {
  std::future<void> other;
  {
    const BlockedSignals blocked;
    other = std::async(std::launch::async, [&] {
      claiming_.wait();
      work(connection_);
    });
  }
  try {
    work(*reader_);
  } catch (...) {
    // The claim, or the work in this session, may wait for the same as the other did.
    while (other.wait_for(Milliseconds(0)) == std::future_status::timeout) {
      cancel_quietly(connection_);
      other.wait_for(StopWatcher::moment);
    }
    throw;
  }
  const auto waiting = wait();
  other.get();
}

pqxx::result PgQueueSession::run_claim(const char* statement, const ClaimRequest& request) {
  const auto receipt = request.receipt.value_or(Receipt{});
  std::optional<std::int64_t> batch;
  if (request.receipt) batch = receipt.lease.batch;
  const auto& counts = receipt.counts;
  const char* wake = request.wakes ? channel_.c_str() : nullptr;
  return connection_.run_prepared(statement, collector_, queue_of(request), request.limit, request.partial,
                                  request.take_over, request.publish_cursor, delivers_, wake, batch,
                                  receipt.lease.attempt, counts.emitted, counts.expired, counts.consumed,
                                  counts.wrong_status, counts.invalid, multirange_text(counts.skipped_ids),
                                  storable_outcomes(receipt), microseconds_since(receipt.signed_at),
                                  microseconds_since(receipt.written_at), request.held);
}

std::optional<std::string> PgQueueSession::storable_outcomes(const Receipt& receipt) const {
  auto outcomes = outcomes_json(receipt);
  if (outcomes) outcomes = storable(connection_.facts(), std::move(*outcomes));
  return outcomes;
}

ClaimReply PgQueueSession::acknowledge_alone(const Receipt& receipt) {
  const auto& counts = receipt.counts;
  const auto rows = connection_.run(
      R"(
SELECT mailroom_acknowledge(ROW(id, attempts, $3, $4, $5, $6, $7, $8, $9::jsonb, $10, $11)::mailroom_receipt)
FROM mailroom_batches
WHERE id = $1::bigint AND attempts = $2::int AND collector = pg_backend_pid())",
      receipt.lease.batch, receipt.lease.attempt, counts.emitted, counts.expired, counts.consumed,
      counts.wrong_status, counts.invalid, multirange_text(counts.skipped_ids), storable_outcomes(receipt),
      microseconds_since(receipt.signed_at), microseconds_since(receipt.written_at));
  if (rows.empty()) throw Error(ExitCode::locked, "this session did not lease the batch");
  return {.receipt_void = !rows[0][0].as<bool>()};
}

std::vector<SinkState> PgQueueSession::share(const std::vector<SinkState>& news,
                                             const std::vector<std::string>& names,
                                             std::optional<Milliseconds> probe) {
  const auto waiting = wait();
  std::optional<std::int64_t> probe_ms;
  if (probe) probe_ms = probe->count();
  return read_sinks(connection_.run(R"(
SELECT name, failures, extract(epoch FROM since), extract(epoch FROM failed_at), extract(epoch FROM probe_at), reason
FROM mailroom_share_sinks($1, $2::jsonb, $3::text[], $4::bigint * interval '1 ms'))",
                                    channel_, storable(connection_.facts(), sinks_json(news)),
                                    array_text(names), probe_ms));
}

void PgQueueSession::check_health() {
  const auto waiting = wait();
  connection_.run("SELECT 1");
}

bool PgQueueSession::arrange(Waking waking) {
  const auto waiting = wait();
  if (waking == Waking::stay_polling)
    return connection_.run("SELECT mailroom_stay_polling()")[0][0].as<bool>();
  if (waking == Waking::ask) {
    const char* among = silent_ ? silent_->c_str() : nullptr;
    silent_ = connection_.run("SELECT mailroom_open_inserts($1::text[])", among)[0][0].c_str();
    return silent_ != "{}";
  }
  // Even if the statement fails: any transaction open at the next `ask` may not have notified.
  silent_.reset();
  connection_.run("SELECT mailroom_start_listening($1)", channel_);
  if (waking == Waking::drain) connection_.run("SELECT pg_notify($1, $2)", channel_, drain_payload);
  return true;
}

Notified PgQueueSession::take_notifications() {
  heard_.merge(connection_.take_payloads());
  if (heard_.erase(drain_payload) > 0) return Notified::drain;
  if (heard_.erase(sinks_payload) > 0) return Notified::sinks;
  if (heard_.erase(queues_payload) > 0) return Notified::queues;
  return std::exchange(heard_, {}).empty() ? Notified::no : Notified::poll;
}

void PgQueueSession::fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) {
  if (claiming_.valid()) {
    const StopWatcher::Wait waiting(watcher_, Awaited::database, reader_.get());
    return batch_reader_.read(*reader_, lease, with_creation_, each,
                              [this](const auto& work) { work_in_both(work); });
  }
  const auto waiting = wait();
  if (claimed_.is_streamed) {
    batch_reader_.advance();
    return batch_reader_.read(connection_, lease, with_creation_, each);
  }
  if (const auto rows = std::exchange(claimed_.rows, std::nullopt); rows && claimed_.reply.lease == lease) {
    for (const auto& row : *rows) {
      if (const auto token = read_claimed(row, with_creation_)) each(*token);
    }
    return;
  }
  const auto rows = connection_.run_prepared("fetch", lease.batch, lease.attempt);
  for (const auto& row : rows)
    each(delivers_ ? read_mail(row) : read_fetched(row, with_creation_));
}

}  // namespace mailroom
