#include "bench/targets.hpp"

#include <algorithm>

namespace mailroom::bench {
namespace {

const std::vector<Target>& all_targets() {
  static const std::vector<Target> targets{
      {"drain at limit 10,000 / COPY", "drain/10000", "copy/plain", 0.40},
      {"drain at limit 1,000 / COPY", "drain/1000", "copy/plain", 0.30},
      {"the same in scattered order", "drain/10000/scattered", "copy/scattered", 0.40},
      {"limit 1,000 in scattered order", "drain/1000/scattered", "copy/scattered", 0.30},
      {"two collectors at limit 10,000 / COPY", "drain/10000/two", "copy/plain", 0.65},
      {"two collectors / one, limit 10", "drain/10/two", "drain/10", 1.2},
      {"the same at limit 100", "drain/100/two", "drain/100", 1.2},
      {"the same at limit 1,000", "drain/1000/two", "drain/1000", 1},
      {"the same at limit 10,000", "drain/10000/two", "drain/10000", 1},
      {"drain at limit 10, tokens/s", "drain/10", "", 12'000},
      {"limit 10, 1,000 lines a claim, tokens/s", "drain/10/lines", "", 200'000},
      {"limit 10, ten million old tokens / none", "drain/10/old", "drain/10", 0.95},
      {"limit 100, ten million old tokens / none", "drain/100/old", "drain/100", 0.95},
      {"limit 1,000, ten million old tokens / none", "drain/1000/old", "drain/1000", 0.95},
      {"limit 10,000, ten million old tokens / none", "drain/10000/old", "drain/10000", 0.95},
      {"expired tokens skipped a second", "skip", "", 1'000'000},
      {"limit 10, every second token another queue's", "drain/10/filtered share", "", 0.8},
      {"the same at limit 100", "drain/100/filtered share", "", 0.8},
      {"the same at limit 1,000", "drain/1000/filtered share", "", 0.8},
      {"the same at limit 10,000", "drain/10000/filtered share", "", 0.8},
      {"another queue's tokens skipped a second", "skip/others", "", 1'000'000},
      {"recovery behind a backlog: p99 added, batches", "latency/behind added", "", 2, false},
      {"100 inserts/s: p50, ms", "latency/100 p50", "", 1.5, false},
      {"100 inserts/s: p99, ms", "latency/100 p99", "", 5, false},
      {"100 inserts/s: p50 / a bare program", "latency/100 p50", "latency/100/bare p50", 1.75, false},
      {"1,000 inserts/s: p50, ms", "latency/1000 p50", "", 1.5, false},
      {"1,000 inserts/s: p99, ms", "latency/1000 p99", "", 5, false},
      {"1,000 inserts/s: commits/s reached", "latency/1000 rate", "", 990},
      {"5,000 inserts/s: p50, ms", "latency/5000 p50", "", 1.5, false},
      {"5,000 inserts/s: p99, ms", "latency/5000 p99", "", 5, false},
      {"5,000 inserts/s: commits/s reached / bare inserts", "latency/5000 rate", "latency/5000/inserts rate",
       0.95},
      {"1 producer: our trigger / none", "producers/1/ours", "producers/1/none", 0.85},
      {"8 producers: our trigger / none", "producers/8/ours", "producers/8/none", 0.85},
      {"32 producers: our trigger / none", "producers/32/ours", "producers/32/none", 0.85},
      {"resident memory at limit 10, MiB", "memory/10", "", 20, false},
      {"idle: share of a core, %", "idle core", "", 0.05, false},
      {"idle: transaction ids an hour", "idle transaction ids", "", 0, false},
      {"idle: WAL bytes an hour", "idle WAL", "", 0, false},
      {"verify --offline, tokens/s", "verify/offline", "", 1'000'000},
      {"verify with the database, tokens/s", "verify/database", "", 50'000},
      {"migrate verify, ten million tokens / their count", "growth/10/migrate-verify", "growth/10/count",
       0.35, false},
      {"doctor", "growth/10/doctor", "growth/10/count", 0.35, false},
      {"audit NAME", "growth/10/audit", "growth/10/count", 0.1, false},
      {"audit --stages", "growth/10/stages", "growth/10/count", 0.2, false},
      {"status", "growth/10/status", "growth/10/count", 0.25, false},
      {"reconcile", "growth/10/reconcile", "growth/10/count", 12, false},
      {"claims over 50 ms beside a pruning, not by the disk", "prune/beside beside other claims over 50 ms",
       "", 0, false},
      {"tokens after a pruning / live size", "prune/beside table / live size", "", 2, false},
      {"sender, batches of 100 / smtp-source", "send/4/100", "send/source", 0.65},
      {"sender, batches of 10 / smtp-source", "send/4/10", "send/source", 0.1},
      {"one connection, 100 ms away, mails/s", "send/far", "", 7},
      {"the same, in chunks, batches of 10", "send/far/chunks/10", "", 30},
      {"the same, batches of 200", "send/far/chunks/200", "", 180},
      {"memory of a sender, 16 connections, MiB", "memory/send", "", 32, false},
      {"limit 10, every second a message of 2 kB / tokens", "drain/10/messages share", "", 0.8},
      {"limit 10, a million scheduled / none", "drain/10/scheduled share", "", 0.97},
      {"sender, messages of 2 kB / tokens", "send/4/100/messages", "send/4/100", 0.8},
      {"100 messages/s to the relay's 250: p50 / tokens", "send/latency/messages p50", "send/latency p50",
       1.5, false},
      {"1,000 messages a statement / a bare table", "messages/bulk", "messages/bare", 0.5},
      {"scheduled messages released a second", "messages/release", "", 25'000},
      {"memory, bodies of 50 kB, limit 10, MiB", "memory/10/messages", "", 64, false},
      {"the same at limit 1,000", "memory/1000/messages", "", 64, false},
      {"the same at limit 10,000", "memory/10000/messages", "", 64, false},
      {"lines to JetStream / a bare program", "handover/nats/64", "handover/nats/bare", 0.7},
      {"the same, 256 lines a claim", "handover/nats/256", "handover/nats/bare", 0.7},
      {"lines to RabbitMQ / a bare program", "handover/amqp/64", "handover/amqp/bare", 0.7},
      {"the same, 256 lines a claim", "handover/amqp/256", "handover/amqp/bare", 0.7},
      {"reports in a maildir read a second", "bounces/maildir", "", 5'000},
      {"memory of bounce, 10,000 reports, MiB", "bounces/maildir memory", "", 32, false},
      {"drain at limit 10,000 / PgQ", "drain/10000", "rivals/pgq/drain", 1.1},
      {"drain at limit 10,000 / graphile-worker", "drain/10000", "rivals/graphile-worker/drain", 15},
      {"mailroom_send / add_job of graphile-worker", "messages/1", "rivals/graphile-worker/add_job/1", 1.3},
      {"the same, eight clients", "messages/8", "rivals/graphile-worker/add_job/8", 1.8},
      {"1,000 messages a statement / add_jobs", "messages/bulk", "rivals/graphile-worker/add_jobs", 1},
      {"100 inserts/s: p50 / graphile-worker", "latency/100 p50", "rivals/graphile-worker/100 p50", 0.5,
       false},
      {"100 inserts/s: p99 / graphile-worker", "latency/100 p99", "rivals/graphile-worker/100 p99", 0.5,
       false},
      {"1 session of 2 kB by SMTP / Postfix", "submission/1", "rivals/postfix/1", 1},
      {"16 sessions", "submission/16", "rivals/postfix/16", 2},
      {"64 sessions", "submission/64", "rivals/postfix/64", 4},
      {"64 sessions of 100 kB by SMTP / Postfix", "submission/64/large", "rivals/postfix/64/large", 1.3},
      {"16 sessions over HTTP / by SMTP", "submission/16/http", "submission/16", 0.8},
      {"flushes a mail by SMTP, 1 session", "submission/1 flushes", "", 1.1, false},
      {"flushes a mail by SMTP, 64 sessions", "submission/64 flushes", "", 0.06, false},
      {"transactions a mail by SMTP, 64 sessions", "submission/64 transactions", "", 0.06, false},
      {"CPU of a mail by SMTP, 64 sessions, us", "submission/64 cpu", "", 300, false},
  };
  return targets;
}

/// Divides run by run, so that drift in the machine's speed cancels out.
std::vector<double> values_of(const Target& target, const Results& results) {
  const auto* above = results.find(target.figure);
  if (above == nullptr) return {};
  if (target.over.empty()) return above->values;
  const auto* below = results.find(target.over);
  if (below == nullptr) return {};
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(above->values.size(), below->values.size()); ++i)
    ratios.push_back(above->values[i] / below->values[i]);
  return ratios;
}

}  // namespace

std::vector<Verdict> judge(const Results& results) {
  std::vector<Verdict> verdicts;
  for (const auto& target : all_targets()) {
    const auto values = values_of(target, results);
    if (values.empty()) continue;
    const auto measured = spread_of(values);
    const bool reached = target.at_least ? measured.median >= target.asked : measured.median <= target.asked;
    verdicts.push_back({&target, measured, reached});
  }
  return verdicts;
}

}  // namespace mailroom::bench
