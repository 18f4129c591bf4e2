// Sets up the session with pinned plans, has it claim and fetch, and sorts its notifications.

#include "claim/pg_queue_session.hpp"

#include <algorithm>
#include <utility>

#include "base/actor.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "db/pooler.hpp"
#include "db/search_path.hpp"
#include "db/values.hpp"
#include "process/stop_watcher.hpp"
#include "queue/preconditions.hpp"

namespace mailroom::claim {
namespace {

/// How long the last statement before a stop may take.
constexpr Milliseconds last_patience{500};

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

/// Publishes the fingerprint as a session lock: it ends with the session, and needs no row and no privilege.
/// If another session holds the lock exclusively, status does not show this key. The batches of this session
/// take it from the setting.
void show_fingerprint(db::Connection& connection, const std::string& fingerprint) {
  connection.run("SELECT set_config('mailroom.key', $1, false)", fingerprint);
  connection.run("SELECT pg_try_advisory_lock_shared(('x' || $1::text)::bit(64)::bigint)", fingerprint);
}

using Seconds = std::chrono::duration<double>;

double seconds_of(WallTime time) {
  return Seconds(time.time_since_epoch()).count();
}

WallTime time_of(double seconds_since_1970) {
  return WallTime(std::chrono::round<Milliseconds>(Seconds(seconds_since_1970)));
}

nlohmann::json json_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

/// The states as mailroom_share_sinks() takes them, an array of objects.
std::string sinks_json(const std::vector<SinkState>& states) {
  auto array = nlohmann::json::array();
  for (const auto& state : states) {
    array.push_back({{"name", state.name},
                     {"failures", state.failures},
                     {"since", seconds_of(state.since)},
                     {"failed_at", seconds_of(state.failed_at)},
                     {"probe_at", seconds_of(state.probe_at)},
                     {"reason", state.reason},
                     {"learnt", json_or_null(state.learnt)},
                     {"seen", json_or_null(state.seen)}});
  }
  return json_text(array);
}

/// Reads rows of name, failures, since, failed_at and probe_at, in seconds since 1970, reason, and learnt.
std::vector<SinkState> read_sinks(const db::Rows& rows) {
  std::vector<SinkState> states;
  for (const auto& row : rows) {
    states.push_back({.name = row.text("name"),
                      .failures = row.number<int>("failures"),
                      .since = time_of(row.number<double>("since")),
                      .failed_at = time_of(row.number<double>("failed_at")),
                      .probe_at = time_of(row.number<double>("probe_at")),
                      .reason = row.text("reason"),
                      .learnt = row.text("learnt")});
  }
  return states;
}

void check_trigger(db::Connection& connection) {
  const std::string table = "tokens";
  const std::string trigger = "before_token_insert";
  const auto state = queue::trigger_state(connection, table, trigger);
  if (state == queue::TriggerState::missing) {
    throw Error(ExitCode::schema, "the trigger before_token_insert on tokens is missing",
                "without it no token can be inserted; mailroom doctor prints the statement that creates it");
  }
  if (state == queue::TriggerState::disabled) {
    throw Error(ExitCode::schema, "the trigger before_token_insert on tokens is disabled",
                queue::enable_trigger_statement(db::quoted_schema(connection), table, trigger));
  }
}

void check_sequences(db::Connection& connection) {
  queue::require_ids_to_spare(connection);
  if (!queue::gives_ids_in_order(connection)) {
    throw Error(ExitCode::schema, "the sequence tokens_id_seq does not give out ids one by one, in order",
                queue::ids_in_order_statement(connection));
  }
  if (const auto statements = queue::statements_for_ordered_ids(connection); !statements.empty()) {
    throw Error(ExitCode::schema,
                "a sequence of the queue's batches or gaps does not give out ids one by one, in order",
                joined(statements, " "));
  }
}

}  // namespace

PgQueueSession::PgQueueSession(const Setup& setup)
    : watcher_(setup.watcher),
      queues_(setup.queues),
      channel_(setup.channel),
      connection_(connect(setup)),
      delivers_(setup.detail.delivers) {
  const auto waiting = wait();
  watch_waits(setup);
  const auto collector = attach(setup);
  claim_.emplace(*connection_, ClaimStatement::Claimant{collector, queues_, channel_, setup.detail});
  fetch_.emplace(*connection_, setup.detail, setup.conninfo, plan_settings, setup.log, watcher_);
}

std::unique_ptr<db::Connection> PgQueueSession::connect(const Setup& setup) {
  if (setup.watcher == nullptr) return std::make_unique<db::Connection>(setup.conninfo, setup.program);
  return process::connect_until_stopped(setup.watcher->signal(), setup.conninfo, setup.program);
}

void PgQueueSession::watch_waits(const Setup& setup) {
  if (setup.log == nullptr) return;
  waits_.emplace(*connection_, db::WaitWatch::Options{
                                   .target = setup.conninfo,
                                   .purpose = "mailroom watch",
                                   .tell = [log = setup.log](const std::string& text) { log->warn(text); },
                                   .patience = wait_patience,
                                   .over = [log = setup.log] { log->info("the wait is over"); }});
}

int PgQueueSession::attach(const Setup& setup) {
  db::require_own_session(*connection_, setup.conninfo, setup.program);
  setup.check_schema(*connection_);
  connection_->run(plan_settings);
  // Without these the proof that no token is lost does not hold.
  check_trigger(*connection_);
  check_sequences(*connection_);
  if (setup.writes_csv) {
    for (const auto& queue : queues_)
      queue::require_signed_tokens(*connection_, queue);
  }
  connection_->listen(channel_, db::Connection::Senders::others);
  connection_->run("SELECT set_config('mailroom.host', $1, false)", host_name());
  if (setup.detail.takes_turns) connection_->run("SELECT set_config('mailroom.turns', 'on', false)");
  int collector = 0;
  for (const auto& queue : queues_)
    collector = connection_->run("SELECT mailroom_attach($1)", queue).value<int>();
  if (!setup.fingerprint.empty()) show_fingerprint(*connection_, setup.fingerprint);
  return collector;
}

void PgQueueSession::require_no_links() {
  const auto waiting = wait();
  for (const auto& queue : queues_)
    queue::require_unsigned_tokens(*connection_, queue);
}

std::vector<queue::QueueRecord> PgQueueSession::definitions() {
  const auto waiting = wait();
  fetch_->refresh_actions();
  return connection_->alone(
      [&](pqxx::transaction_base& transaction) { return queue::read_records(transaction, queues_); });
}

ClaimReply PgQueueSession::claim(const ClaimRequest& request) {
  // The last attempt does not wait long for a lock.
  const auto waiting = wait(request.without_lock ? last_patience : process::StopWatcher::moment);
  claimed_ = claim_->run(request);
  complete(claimed_.reply.lease);
  return claimed_.reply;
}

void PgQueueSession::complete(std::optional<Lease>& lease) {
  if (!lease || !delivers_) return;
  lease->begun = announced_;
  if (lease->attempt == 1) return;
  const auto rows = connection_->run(
      "SELECT coalesce(jsonb_path_query_array(earlier_attempts, '$[*].begun'), '[]') FROM mailroom_batches WHERE id = $1",
      lease->batch);
  if (rows.empty()) return;
  for (const auto& sinks : parse_json(rows.value<std::string>()))
    lease->earlier.push_back(sinks.get<std::vector<std::string>>());
}

void PgQueueSession::announce(const std::vector<std::string>& sinks) {
  if (sinks == announced_) return;
  const auto waiting = wait();
  connection_->run("SELECT set_config('mailroom.begun', $1, false)",
                   sinks.empty() ? "" : db::quoted_array_text(sinks));
  announced_ = sinks;
}

std::vector<std::int64_t> PgQueueSession::begin(const std::vector<Lease>& leases,
                                                const std::vector<std::string>& sinks) {
  const auto waiting = wait();
  std::vector<std::string> batches;
  std::vector<std::string> attempts;
  for (const auto& lease : leases) {
    batches.push_back(std::to_string(lease.batch));
    attempts.push_back(std::to_string(lease.attempt));
  }
  auto announced = announced_;
  for (const auto& sink : sinks) {
    if (std::ranges::find(announced, sink) == announced.end()) announced.push_back(sink);
  }
  auto held = connection_
                  ->run("SELECT mailroom_begin_leases($1::bigint[], $2::integer[], $3::text[], $4)",
                        db::array_text(batches), db::array_text(attempts), db::quoted_array_text(sinks),
                        db::quoted_array_text(announced))
                  .values<std::int64_t>();
  announced_ = announced;
  return held;
}

std::vector<WithheldToken> PgQueueSession::withheld(const std::vector<std::int64_t>& tokens) {
  const auto waiting = wait();
  std::vector<std::string> texts;
  for (const auto token : tokens)
    texts.push_back(std::to_string(token));
  std::vector<WithheldToken> withheld;
  for (const auto& row :
       connection_->run("SELECT token, reason FROM mailroom_withheld($1::bigint[])", db::array_text(texts)))
    withheld.push_back({.token = row.number("token"), .reason = row.text("reason")});
  return withheld;
}

void PgQueueSession::keep(const std::vector<Lease>& leases) {
  const auto waiting = wait();
  for (const auto& queue : queues_) {
    std::vector<std::string> batches;
    std::vector<std::string> attempts;
    for (const auto& lease : leases) {
      if (lease.queue != queue) continue;
      batches.push_back(std::to_string(lease.batch));
      attempts.push_back(std::to_string(lease.attempt));
    }
    if (!batches.empty())
      connection_->run("SELECT mailroom_keep_leases($1, $2::bigint[], $3::integer[])", queue,
                       db::array_text(batches), db::array_text(attempts));
  }
}

ClaimedBatch PgQueueSession::take_batch(const Lease& lease) {
  if (claimed_.reply.lease != lease) return {.reply = {.lease = lease}};
  return {.reply = claimed_.reply,
          .rows = std::exchange(claimed_.rows, std::nullopt),
          .read_at = claimed_.read_at};
}

void PgQueueSession::fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) {
  const auto waiting = wait();
  auto batch = take_batch(lease);
  fetch_->read(batch, each);
}

std::optional<ClaimReply> PgQueueSession::fetch_and_claim(const Lease& lease,
                                                          const std::function<void(const TokenRow&)>& each,
                                                          const NextClaim& next) {
  auto batch = take_batch(lease);
  std::optional<ClaimedBatch> claimed;
  if (delivers_) {
    const auto run = [&](const ClaimRequest& request) { return claim_->run(request); };
    claimed = fetch_->read_and_claim(batch, each, next, run);
    if (!claimed) return std::nullopt;
  } else if (const auto* const request = fetch_->may_read_beside(batch) ? next() : nullptr) {
    claimed = fetch_->read_beside(batch, each, [&] { return claim_->run(*request); });
  }
  if (!claimed) {
    const auto waiting = wait();
    fetch_->read(batch, each);
    return std::nullopt;
  }
  claimed_ = *std::move(claimed);
  complete(claimed_.reply.lease);
  return claimed_.reply;
}

std::vector<SinkState> PgQueueSession::share(const std::vector<SinkState>& news,
                                             const std::vector<std::string>& names,
                                             std::optional<Milliseconds> probe) {
  const auto waiting = wait();
  std::optional<std::int64_t> probe_ms;
  if (probe) probe_ms = probe->count();
  return read_sinks(connection_->run(R"(
SELECT name, failures, extract(epoch FROM since) AS since, extract(epoch FROM failed_at) AS failed_at,
  extract(epoch FROM probe_at) AS probe_at, reason, learnt
FROM mailroom_share_sinks($1, $2::jsonb, $3::text[], $4::bigint * interval '1 ms'))",
                                     channel_, db::storable(connection_->facts(), sinks_json(news)),
                                     db::quoted_array_text(names), probe_ms));
}

void PgQueueSession::report(const Receipt& late) {
  const auto waiting = wait();
  claim_->report(late);
}

void PgQueueSession::record(const std::string& kind, const std::string& details) {
  const auto waiting = wait();
  const auto* queue = queues_.size() == 1 ? queues_.front().c_str() : nullptr;
  connection_->run("SELECT mailroom_record_event($1, $2, $3::jsonb)", kind, queue,
                   db::storable(connection_->facts(), details));
}

std::optional<std::int64_t> PgQueueSession::newest_batch() {
  const auto waiting = wait();
  return connection_->run("SELECT coalesce(max(id), 0) FROM mailroom_batches").value<std::int64_t>();
}

void PgQueueSession::check_health() {
  const auto waiting = wait();
  connection_->run("SELECT 1");
}

bool PgQueueSession::arrange(Waking waking) {
  const auto waiting = wait();
  if (waking == Waking::stay_polling) return connection_->run("SELECT mailroom_stay_polling()").value<bool>();
  if (waking == Waking::ask) {
    const char* among = silent_ ? silent_->c_str() : nullptr;
    silent_ = connection_->run("SELECT mailroom_open_inserts($1::text[])", among).text();
    return silent_ != "{}";
  }
  // Even if the statement fails: any transaction open at the next `ask` may not have notified.
  silent_.reset();
  connection_->run("SELECT mailroom_start_listening($1)", channel_);
  if (waking == Waking::drain) connection_->run("SELECT pg_notify($1, $2)", channel_, drain_payload);
  return true;
}

int PgQueueSession::release() {
  const auto waiting = wait();
  return connection_->run("SELECT released FROM mailroom_release($1)", release_limit).value<int>();
}

Notified PgQueueSession::take_notifications() {
  heard_.merge(connection_->take_payloads());
  if (heard_.erase(drain_payload) > 0) return Notified::drain;
  if (heard_.erase(sinks_payload) > 0) return Notified::sinks;
  if (heard_.erase(queues_payload) > 0) return Notified::queues;
  return std::exchange(heard_, {}).empty() ? Notified::no : Notified::poll;
}

}  // namespace mailroom::claim
