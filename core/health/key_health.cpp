// The rules about the keys that collectors sign with, and that tokens of the last hour were signed with.

#include <algorithm>
#include <fmt/format.h>

#include "base/wording.hpp"
#include "health/queue_health.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::health {
namespace {

constexpr const char* const same_key_text =
    "give all the same key: SIGHUP makes a consumer read its key file again; one with a key in its environment must be "
    "restarted";

/// As --consumer takes it: `send@web1:77`.
std::string consumer_name(const status::ServerSession& session) {
  const auto process = status::collector_process(session.application);
  if (!process) return fmt::format("pid {}", session.pid);
  const std::string_view command = session.application.starts_with("mailroom send") ? "send" : "collect";
  return fmt::format("{}@{}:{}", command, process->host, process->pid);
}

}  // namespace

std::map<std::string, std::string> consumers_by_key(const status::QueueStatus& status) {
  std::map<std::string, std::string> keys;
  // The key of one that may not serve the database is nobody's mistake, and nothing is mailed anew for it.
  const auto is_foreign = [&](const status::ServerSession& session) {
    return std::ranges::find(status.foreign, session.application, &queue::ForeignConsumer::application) !=
           status.foreign.end();
  };
  for (const auto& collector : status.collectors) {
    if (collector.key.empty() || is_foreign(collector.session)) continue;
    auto& names = keys[collector.key];
    names += (names.empty() ? "" : " and ") + consumer_name(collector.session);
  }
  return keys;
}

/// Tokens that were signed with a key that is neither configured here nor a connected consumer's.
std::vector<QueueFinding> judge_recent_keys(const status::QueueStatus& status, const HealthLimits& limits) {
  std::vector<QueueFinding> found;
  const auto by_key = consumers_by_key(status);
  if (by_key.empty()) return found;
  for (const auto& key : status.recent_keys) {
    const bool is_known = std::ranges::find(limits.keys, key.fingerprint) != limits.keys.end();
    if (by_key.contains(key.fingerprint) || is_known) continue;
    found.push_back(
        {limits.keys.empty() ? Severity::warning : Severity::failure,
         "signed_with_other_key",
         fmt::format("{} of the last hour, the last mailed {} ago, {} signed with the key {}, which {}",
                     counted(key.tokens, "unused link"), status::age_text(key.last),
                     key.tokens == 1 ? "is" : "are", key.fingerprint,
                     limits.keys.empty()
                         ? "no connected consumer signs with now"
                         : "is not configured here: a verifier with this configuration rejects them"),
         {},
         fmt::format(
             "after a change of the key, signing.previous_key_files keeps the old one valid. If that key was a "
             "mistake: mailroom audit --key {0} --since 1d names who has such links, and mailroom resend --key {0} "
             "--since 1d mails them anew",
             key.fingerprint)});
  }
  return found;
}

std::vector<QueueFinding> judge_keys(const status::QueueStatus& status, const HealthLimits& limits) {
  auto found = judge_recent_keys(status, limits);
  const auto by_key = consumers_by_key(status);
  std::string who;
  for (const auto& [key, pids] : by_key)
    who += fmt::format("{}{} by {}", who.empty() ? "" : ", ", key, pids);
  if (by_key.size() > 1) {
    found.push_back(
        {Severity::failure,
         "different_keys",
         "the collectors sign with different keys: " + who +
             ". A verifier with only one of these keys rejects tokens signed with the others",
         {},
         std::string(same_key_text) +
             ". mailroom resend --consumer NAME --since 1h, with the name of the one whose key is wrong, mails "
             "again what it has signed"});
  }
  for (const auto& [key, pids] : by_key) {
    if (limits.keys.empty() || key == limits.keys.front()) continue;
    const bool is_previous = std::ranges::find(limits.keys, key) != limits.keys.end();
    found.push_back({is_previous ? Severity::warning : Severity::failure,
                     "other_key",
                     fmt::format("{} signs with {} {}, and not with {}, the key configured here: {}", pids,
                                 is_previous ? "the previous key" : "the key", key, limits.keys.front(),
                                 is_previous ? "it has not reloaded its key"
                                             : "a verifier with this key rejects its tokens"),
                     {},
                     same_key_text});
  }
  return found;
}

}  // namespace mailroom::health
