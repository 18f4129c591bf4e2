#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "queue/queue_status.hpp"
#include "queue/session_text.hpp"

namespace mailroom {

enum class Severity { ok, warning, failure };

/// Something about a queue that an operator should know.
struct QueueFinding {
  Severity severity = Severity::warning;
  std::string code;  ///< for programs: `no_collector`, `batch_open`, …
  std::string text;  ///< for people, with who is to blame
  std::string mend;  ///< the command or SQL statement that mends it, whole; empty when there is none
};

/// From when on a state is a finding.
struct HealthLimits {
  std::optional<Milliseconds> max_lag;  ///< of the oldest waiting token
  std::optional<std::int64_t> max_pending;
  Milliseconds batch_open{30'000};         ///< how long a batch may be with its collector
  Milliseconds collector_silence{31'000};  ///< see silence_limit()
  Milliseconds lock_held{10'000};          ///< how long the queue's lock may be held, or waited for
  Milliseconds transaction_open{60'000};   ///< how long a transaction may keep tokens in a hole
};

/// How long a collector that looks once a `poll_interval` may not ask for work.
Milliseconds silence_limit(Milliseconds poll_interval);

/// What is wrong with the queue: failures before warnings, causes before symptoms.
std::vector<QueueFinding> judge_queue(const QueueStatus& status, const HealthLimits& limits);

/// The highest severity; ok for none.
Severity worst(const std::vector<QueueFinding>& findings);

/// `ok`, `warning` or `failure`.
const char* severity_name(Severity severity);

/// Which collectors sign with which key, by its fingerprint: `pid 4567 and pid 4568`.
std::map<std::string, std::string> pids_by_key(const QueueStatus& status);

/// A warning when they sign with different ones.
std::optional<QueueFinding> judge_keys(const QueueStatus& status);

}  // namespace mailroom
