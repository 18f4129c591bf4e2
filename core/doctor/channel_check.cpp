// Does a new token wake the collectors? Compares the trigger's channel, and sends itself a notification.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <poll.h>
#include <random>

#include "base/clock.hpp"
#include "base/pattern.hpp"
#include "base/text.hpp"
#include "doctor/finding.hpp"
#include "doctor/subject.hpp"
#include "schema/migration.hpp"
#include "status/fix_commands.hpp"
#include "status/queue_sessions.hpp"

namespace mailroom::doctor {
namespace {

constexpr std::chrono::seconds patience{2};

std::string source_of_trigger(db::Connection& connection) {
  const auto rows = connection.run(R"(
SELECT p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
WHERE t.tgrelid = 'tokens'::regclass AND t.tgname = 'after_token_inserted')");
  return rows.empty() ? std::string() : rows.text();
}

/// A warning with the fix for the origin of collect.channel.
Finding mismatch(const config::Settings& settings, const std::string& channel, const std::string& reason) {
  const auto& origin = config::setting_of(settings, "collect.channel").origin;
  switch (origin.kind) {
    case config::OriginKind::flag:
      return warning(reason, {}, fmt::format("start the collectors with {} {}", origin.where, channel));
    case config::OriginKind::file:
      return warning(reason, {}, fmt::format("set channel: {} at {}", channel, origin.where));
    case config::OriginKind::environment:
    case config::OriginKind::default_value:
      break;
  }
  return warning(reason, {{status::FixKind::name_channel, "export MAILROOM_CHANNEL_NAME=" + channel}});
}

Findings judge_name(const config::Settings& settings, const std::vector<std::string>& channels) {
  const auto polls = "collectors see a new token only at the next poll, within " +
                     format_duration(settings.collect.poll_interval);
  if (channels.empty()) {
    return {warning("the source of the trigger on tokens names no channel to notify: " + polls,
                    {make_functions()},
                    "this makes all functions anew, trg_after_token_inserted among them")};
  }
  if (std::find(channels.begin(), channels.end(), settings.collect.channel) != channels.end()) return {};
  return {mismatch(settings, channels.front(),
                   fmt::format("collect.channel is {}, but the trigger on tokens notifies {}: {}",
                               settings.collect.channel, joined(channels, " and "), polls))};
}

/// Reports a queue of notifications that fills up. Returns its usage.
double judge_queue(db::Connection& connection, Findings& findings) {
  const auto queue = connection.transact(
      [](pqxx::work& transaction) { return status::read_notification_queue(transaction); });
  if (const auto found = health::judge_notifications(queue)) findings.push_back(finding_of(*found));
  return queue.usage;
}

/// True if a notification on a random channel comes back to this session.
bool hears_itself(db::Connection& connection) {
  std::random_device random;
  const auto channel = fmt::format("mailroom_doctor_{:08x}{:08x}", random(), random());
  connection.listen(channel);
  connection.run("SELECT pg_notify($1, '')", channel);
  const auto deadline = steady_now() + patience;
  while (!connection.take_notifications()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_now());
    if (left.count() <= 0) return false;
    pollfd watched{connection.socket(), POLLIN, 0};
    poll(&watched, 1, static_cast<int>(left.count()));
  }
  return true;
}

/// Why no notification can be sent: the commit of another one takes long.
Finding held_up(db::Connection& connection, const db::DatabaseError& error) {
  const auto notifier =
      connection.transact([](pqxx::work& transaction) { return status::find_notifier(transaction); });
  if (!notifier) return not_checked(fmt::format("whether notifications arrive: {}", error.what()));
  if (health::waits_for_standby(*notifier)) return finding_of(health::standby_awaited(*notifier));
  return failure(
      fmt::format("{}, {}, holds the lock under which every transaction that notifies commits: no INSERT "
                  "into accounts can proceed",
                  status::session_text(*notifier), status::activity_text(*notifier)),
      {status::end_session(notifier->pid)});
}

void judge_arrival(db::Connection& connection, Findings& findings) {
  try {
    if (hears_itself(connection)) return;
    findings.push_back(warning(
        "a test notification did not arrive within " + format_duration(std::chrono::milliseconds(patience)),
        {}, "point database.url at the server itself, without a pooler or proxy"));
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != db::sqlstate::lock_not_available) throw;
    findings.push_back(held_up(connection, error));
  }
}

}  // namespace

std::vector<std::string> notified_channels(std::string_view source) {
  static const Pattern comment(R"(--[^\n]*|/\*[\s\S]*?\*/)");
  static const Pattern call(
      R"re(\bNOTIFY\s+(?:"([^"]+)"|([A-Za-z_][A-Za-z0-9_$]*))|\bpg_notify\s*\(\s*'([^']+)')re",
      LetterCase::ignored);
  std::vector<std::string> channels;
  for (const auto& match : call.all(comment.replaced(source, " "))) {
    auto name = !match[1].empty() ? match[1] : !match[2].empty() ? lower_case(match[2]) : match[3];
    if (std::find(channels.begin(), channels.end(), name) == channels.end())
      channels.push_back(std::move(name));
  }
  return channels;
}

Findings check_channel(Subject& subject) {
  const auto& settings = *subject.settings;
  auto findings = judge_name(settings, notified_channels(source_of_trigger(*subject.connection)));
  if (subject.in_recovery) {
    findings.push_back(not_checked("whether notifications arrive: a standby does not support them"));
    return findings;
  }
  // LISTEN would remain on a server process that other clients share.
  if (subject.pooler == db::PoolerKind::transaction) {
    findings.push_back(
        not_checked("whether notifications arrive: a pooler in transaction mode does not support them"));
    return findings;
  }
  constexpr double nearly_full = 0.99;
  if (judge_queue(*subject.connection, findings) >= nearly_full) {
    findings.push_back(not_checked("whether notifications arrive: the queue of notifications is full"));
    return findings;
  }
  judge_arrival(*subject.connection, findings);
  return or_fine(
      std::move(findings),
      settings.collect.channel + ", which the trigger on tokens notifies; a test notification arrived");
}

}  // namespace mailroom::doctor
