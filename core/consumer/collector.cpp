// The loop itself comes first. What SIGHUP changes in it, and how it stops, follow. It decides no limit
// (batcher), writes no line (the sink), and leaves every state of a token to PostgreSQL.

#include "consumer/collector.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/wording.hpp"

namespace mailroom::consumer {
namespace {

constexpr Milliseconds longest_hold{100};  ///< without an acknowledgement, while nothing may be claimed

SessionKeeper::Options session_options(const CollectorSetup& setup) {
  return {.connect = setup.connect, .healthcheck_interval = setup.healthcheck_interval};
}

PollingState::Options polling_options(const CollectorSetup& setup) {
  return {.allowed = !setup.notify_always,
          .batch_timeout = setup.turns.batcher.batch_timeout,
          .poll_interval = setup.turns.batcher.poll_interval};
}

/// `templates: 1 changed, send.from`
std::string took_text(const std::vector<SettingChange>& changes) {
  std::string text;
  for (const auto& change : changes)
    text += (text.empty() ? "" : ", ") + change.text();
  return text.empty() ? "nothing new" : text;
}

/// For the record of the reload. The texts of settings are those that a log may show.
std::string reload_details(const std::vector<SettingChange>& changes, const std::string& took) {
  auto details = nlohmann::ordered_json{{"took", took}, {"settings", nlohmann::ordered_json::array()}};
  for (const auto& change : changes) {
    if (change.content.empty())
      details["settings"].push_back(
          {{"name", change.name}, {"before", change.before}, {"after", change.after}});
  }
  return json_text(details);
}

std::string waiting_text(std::optional<std::int64_t> tokens) {
  const auto count = tokens.value_or(0);
  if (!tokens) return "tokens wait";
  return count == 1 ? "1 token waits" : counted(count, "token") + " wait";
}

}  // namespace

void Collector::run() {
  try {
    collect();
  } catch (const Error&) {
    waker_.hand_over(sessions_.session_or_null());
    throw;
  }
  waker_.hand_over(sessions_.session_or_null());
}

void Collector::collect() {
  observer_.turned(environment_.now());
  sessions_.connect_first(limits_.wait_for_database);
  while (!is_finished()) {
    observer_.turned(environment_.now());
    // Also without a session: the new configuration may make one possible.
    is_reloading_ = environment_.take_reload() || is_reloading_;
    if (is_reloading_ && !claimer_.has_claim()) reload();
    try {
      if (!sessions_.connect()) continue;
      pipeline_.keep_leases();
      record_reloads();
      step();
    } catch (const db::ConnectionLost& error) {
      sessions_.lost(error);
    } catch (const db::DatabaseError& error) {
      if (sessions_.fixes(error)) continue;
      acknowledge_before_leaving();
      throw;
    } catch (const Error& error) {
      // A token that the lines have no place for. What was written before it must not be written again.
      if (error.code() == ExitCode::configuration) acknowledge_before_leaving();
      throw;
    }
  }
  observer_.stopping();
  finish_and_acknowledge();
  leave_sinks();
  pipeline_.emission_log().write(environment_.now());
}

void Collector::finish_and_acknowledge() {
  pipeline_.finish_all();
  receipts_.acknowledge_to_leave();
  if (!pipeline_.finish_late()) return;
  sessions_.connect_to_leave();
  pipeline_.report_late();
}

/// What is not given back is free again after some time.
void Collector::leave_sinks() {
  try {
    pipeline_.leave();
  } catch (const Error& error) {
    log_.debug("the sinks could not be left", {{"reason", error.what()}});
  }
}

void Collector::step() {
  const auto now = environment_.now();
  if (!pipeline_.consult(claimer_.hear(now))) return;
  pipeline_.report_late();
  const auto [claim, until] = claimer_.next(now);
  if (!claim) {
    if (limits_.once) require_available(now);
    wait_until(until);
  } else if (claim->reply.lease) {
    const auto rows = [&, &claim = claim](const auto& each) { claimer_.read(*claim, each, claims_on()); };
    pipeline_.deliver(*claim, rows, claims_on());
  } else if (pipeline_.has_open()) {
    pipeline_.finish_oldest();
    // Another claim acknowledges it, and sees what its outcome leaves.
    claimer_.notify();
  } else {
    is_drained_ = claimer_.is_drained();
  }
}

bool Collector::is_finished() const {
  if (claimer_.has_claim()) return false;
  return environment_.stop_requested() || (limits_.once && is_drained_) ||
         (limits_.max_batches && pipeline_.written() >= *limits_.max_batches);
}

bool Collector::claims_on() const {
  return !limits_.max_batches && !is_reloading_ && !environment_.stop_requested();
}

void Collector::wait_until(TimePoint until) {
  // A batch that is held long would be emitted again after a crash, and one that the receiver could not
  // take goes back to the queue, for any consumer that can deliver it.
  if (pipeline_.has_open()) return pipeline_.finish_all();
  if (!receipts_.empty() && until - environment_.now() > longest_hold) return receipts_.acknowledge_oldest();
  auto& emitted = pipeline_.emission_log();
  emitted.write_if_due(environment_.now(), EmissionLog::Loop::idle);
  sessions_.wait(std::min(until, emitted.due(EmissionLog::Loop::idle)));
}

Collector::Collector(CollectorSetup setup, CollectorLimits limits, Reload reload,
                     process::Environment& environment, Log& log, ConsumerObserver& observer)
    : setup_(std::move(setup)),
      limits_(limits),
      reload_(std::move(reload)),
      environment_(environment),
      log_(log),
      observer_(observer),
      sessions_(session_options(setup_), environment, log, observer),
      waker_(polling_options(setup_), environment, log),
      receipts_(sessions_, environment, log),
      pipeline_(setup_.key, setup_.make_sink(), sessions_, receipts_, waker_, environment, log, observer),
      claimer_({setup_.queues, setup_.turns}, sessions_, receipts_, waker_, pipeline_, environment, log) {}

void Collector::require_available(TimePoint now) const {
  const bool holds_some = pipeline_.has_open() || !receipts_.empty();
  if (holds_some || now >= pipeline_.capacity().from || pipeline_.is_ready()) return;
  throw Error(ExitCode::database,
              fmt::format("{}; {} in the queue", pipeline_.unavailability(),
                          setup_.count_waiting ? waiting_text(setup_.count_waiting()) : "tokens wait"),
              "mailroom doctor checks it; run the command again later, or without --once to wait");
}

void Collector::acknowledge_before_leaving() {
  try {
    finish_and_acknowledge();
  } catch (const Error& error) {
    // The caller reports the error that ended the run; this error is a consequence of it.
    log_.debug("acknowledgement failed", {{"reason", error.what()}});
  }
}

void Collector::reload() {
  is_reloading_ = false;
  observer_.reloading();
  try {
    apply(reload_());
    observer_.reloaded(true);
  } catch (const Error& error) {
    log_.error("reload failed, keeping the previous configuration", {{"reason", error.what()}});
    observer_.reloaded(false);
  }
}

void Collector::apply(CollectorSetup setup) {
  auto sink = setup.make_sink();
  pipeline_.finish_all();
  if (setup.session_identity != setup_.session_identity) leave_session();
  setup_ = std::move(setup);
  sessions_.configure(session_options(setup_));
  claimer_.configure({setup_.queues, setup_.turns});
  waker_.configure(polling_options(setup_));
  pipeline_.configure(setup_.key, std::move(sink));
  for (const auto& change : setup_.changes) {
    if (!change.content.empty()) continue;
    log_.info(change.takes_effect ? "changed" : "changed, effective after a restart",
              {{"setting", change.name}, {"from", change.before}, {"to", change.after}});
  }
  const auto took = took_text(setup_.changes);
  log_.info("configuration reloaded",
            {{"changed", setup_.changes.size()}, {"took", took}, {"signing_key", setup_.key.fingerprint()}});
  unrecorded_.push_back(reload_details(setup_.changes, took));
}

void Collector::record_reloads() {
  while (!unrecorded_.empty()) {
    sessions_.record("reload", unrecorded_.front());
    unrecorded_.erase(unrecorded_.begin());
  }
}

void Collector::leave_session() {
  try {
    finish_and_acknowledge();
  } catch (const Error& error) {
    if (db::retry_for(error) != db::Retry::new_session) throw;
    // Already logged. In another database the same number is another batch.
    receipts_.forget();
    pipeline_.forget_late();
  }
  waker_.hand_over(sessions_.session_or_null());
  sessions_.leave();
}

}  // namespace mailroom::consumer
