// What is wrong with a queue, and how to fix it.
//
// It judges a state that was read before, and changes nothing. It does not read the database (core/status),
// does not try relays or keys (core/doctor), and does not say what becomes of a single token (core/fate).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "status/fix_commands.hpp"
#include "status/queue_sessions.hpp"
#include "status/queue_status.hpp"

namespace mailroom::health {

enum class Severity { ok, warning, failure };

/// A problem with a queue.
struct QueueFinding {
  Severity severity = Severity::warning;
  std::string code;   ///< for programs: `no_collector`, `batch_open`, …
  std::string text;   ///< for people; names the session or process that causes it
  status::Fix fix{};  ///< empty if there is none
  /// What may help where no command surely does; empty if there is nothing to say.
  std::string hint{};
};

/// The limits beyond which a state is a finding.
struct HealthLimits {
  std::optional<Milliseconds> max_lag;  ///< of the oldest waiting token
  std::optional<std::int64_t> max_pending;
  Milliseconds batch_open{30'000};         ///< how long a batch may be with its collector
  Milliseconds collector_silence{31'000};  ///< see silence_limit()
  Milliseconds lock_held{10'000};          ///< how long the queue's lock may be held, or waited for
  Milliseconds transaction_open{60'000};   ///< how long a transaction may keep tokens in a gap
  /// The fingerprints of the keys that tokens are verified with, the current one first; if empty, collectors
  /// may sign with any.
  std::vector<std::string> keys{};
  std::optional<int> send_connections{};  ///< as configured here
};

/// How often a consumer looks at the whole schedule at least.
constexpr std::chrono::seconds schedule_interval{60};

/// How long a collector that polls once per `poll_interval` may go without polling.
Milliseconds silence_limit(Milliseconds poll_interval);

/// Returns the problems of the queue: failures before warnings, causes before symptoms.
std::vector<QueueFinding> judge_queue(const status::QueueStatus& status, const HealthLimits& limits);

/// The highest severity; ok for none.
Severity worst(const std::vector<QueueFinding>& findings);

/// `ok`, `warning` or `failure`.
const char* severity_name(Severity severity);

/// Maps each key's fingerprint to the collectors that sign with it: `send@web1:77 and send@web2:78`.
std::map<std::string, std::string> consumers_by_key(const status::QueueStatus& status);

/// Returns a failure if the token sequence, whose last id is `drawn`, is behind the cursor of a queue.
std::optional<QueueFinding> judge_cursor(const std::string& queue, std::int64_t cursor, std::int64_t drawn);

/// Returns the problem of a sequence that is behind its table: a failure, or a warning where rows may have
/// ids of their own.
QueueFinding judge_sequence(const queue::TableSequence& sequence);

/// Returns the problems of triggers that do not fire; `schema` is quoted.
std::vector<QueueFinding> judge_triggers(const status::TriggerStatus& status, const std::string& schema);

/// Returns a failure for each table or function that statements of applications find instead of mailroom's;
/// `schema` is quoted.
std::vector<QueueFinding> judge_shadows(const std::vector<status::Shadow>& shadows,
                                        const std::string& schema);

/// Messages that nobody will ever mail are a failure, or a warning if the trigger would have refused them;
/// `schema` is quoted.
std::vector<QueueFinding> judge_lost_messages(const status::LostMessages& lost, const std::string& schema);

/// Returns a warning if any account has no token: an import may want none.
std::optional<QueueFinding> judge_accounts_without_token(std::int64_t accounts, const std::string& schema);

/// Returns the problem of a queue of notifications that fills up: a failure from half of it on.
std::optional<QueueFinding> judge_notifications(const status::NotificationQueue& queue);

/// Returns a failure if a collector, or the session that holds the queue's lock, waits for a synchronous
/// standby.
std::optional<QueueFinding> judge_standby_wait(const status::QueueStatus& status, const HealthLimits& limits);

/// The failure that `session` waits for a synchronous standby.
QueueFinding standby_awaited(const status::ServerSession& session);

/// True if the session waits for a synchronous standby to confirm its commit.
bool waits_for_standby(const status::ServerSession& session);

/// Returns a failure if a session has held the queue's lock for long, and warnings of others' locks.
std::vector<QueueFinding> judge_locks(const status::QueueStatus& status, const HealthLimits& limits);

/// Returns a failure if tokens wait in another schema, while this one never had any: accounts are inserted
/// there.
std::optional<QueueFinding> judge_other_schema(const status::QueueStatus& status);

/// Returns the problem of a paused queue: a failure once tokens wait.
std::optional<QueueFinding> judge_pause(const status::QueueStatus& status);

/// `12 tokens wait`
std::string tokens_waiting(const status::QueueStatus& status);

/// Returns the problems of the queue's collectors, of the batches that they hold, and of scheduled messages
/// that none of them makes tokens of.
std::vector<QueueFinding> judge_collectors(const status::QueueStatus& status, const HealthLimits& limits);

/// Returns warnings of the transactions that gaps wait for.
std::vector<QueueFinding> judge_gaps(const status::QueueStatus& status, const HealthLimits& limits);

/// Returns a failure if the collectors sign with different keys, and the problem of those that sign with
/// another key than tokens are verified with: a failure, or a warning for a previous key. Likewise for tokens
/// of the last hour.
std::vector<QueueFinding> judge_keys(const status::QueueStatus& status, const HealthLimits& limits);

/// Tokens that wait since their queue was dropped are a failure. An action that no queue ever took may be
/// another program's.
QueueFinding judge_untaken(const status::UntakenAction& action);

/// What has kept the queue's mails from people for `lasts` at least, in one clause: `the queue is paused`,
/// `its rate allows no more`. Empty if nothing that is known does.
std::string cause_of_delay(const status::QueueStatus& status, Milliseconds lasts = Milliseconds{0});

/// How many tokens of those above the cursor will expire before their turn, at least, at the rate that the
/// queue keeps or, once tokens wait for 20 s, has kept since, at most in the last minute; nullopt if no rate
/// is known.
std::optional<std::int64_t> forecast_expiring(const status::QueueStatus& status);

/// Returns the problems of tokens that expired unsent, and of those that will.
std::vector<QueueFinding> judge_expiry(const status::QueueStatus& status, const HealthLimits& limits = {});

/// The rules about sinks: one that is unavailable, a failure if it has been for a minute while the queue has
/// tokens, and one that has refused every token for some time.
std::vector<QueueFinding> judge_sinks(const status::DeliveryStatus& deliveries, bool has_tokens);

/// The rules about bounces and complaints: providers stop senders with many of either. `accepted`: mails of
/// the queue within the same time.
std::vector<QueueFinding> judge_came_back(const status::CameBack& reports, std::int64_t accepted);

}  // namespace mailroom::health
