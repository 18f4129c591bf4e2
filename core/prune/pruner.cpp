// The rounds over tokens, messages, their contents, batches and deliveries, step by step;
// migrations/functions/prune.sql has the steps.

#include "prune/pruner.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace mailroom::prune {
namespace {

// Forces scans of ordered indexes, whatever the statistics say.
constexpr const char* session_sql = R"(
SET row_security = off;
SET plan_cache_mode = force_generic_plan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off)";

// The maximum number of rows that one step reads, so that it stays short where few rows are old.
constexpr int window = 20'000;

/// Ids from `first` to `last`; empty if `last` is less than `first`.
struct IdSpan {
  std::int64_t first = 1;
  std::int64_t last = 0;

  std::int64_t size() const { return last < first ? 0 : last - first + 1; }
};

/// The server's time `older_than` ago.
Moment moment_before(db::Connection& connection, Milliseconds older_than) {
  return connection.server_time() - std::chrono::ceil<std::chrono::seconds>(older_than);
}

std::optional<HeldBack> find_held_back(db::Connection& connection, Moment before) {
  const auto rows = connection.run(R"(
SELECT q.queue, q.cursor
FROM (SELECT * FROM mailroom_queue_states() ORDER BY cursor LIMIT 1) q
WHERE EXISTS (
  SELECT FROM (
    SELECT coalesce(t.consumed_at, t.expires_at) AS ended FROM tokens t
    WHERE t.id > q.cursor
    ORDER BY t.id
    LIMIT 10000) n
  WHERE n.ended < $1::bigint))",
                                   in_seconds(before));
  if (rows.empty()) return std::nullopt;
  return HeldBack{.queue = rows[0].text("queue"), .cursor = rows[0].number("cursor")};
}

/// One pass over the tokens, one over the messages, one over the batches, and one over the deliveries of each
/// queue. Each step is a
/// transaction of its own, which waits for no locked row and reads at most 20,000 rows.
class Pass {
 public:
  Pass(db::Connection& connection, int step, Moment contents_before, const PruneObserver& go_on,
       PruneSummary& summary)
      : connection_(connection),
        step_(step),
        contents_before_(contents_before),
        go_on_(go_on),
        summary_(summary) {}

  void run() {
    const auto row = connection_.run(R"(
SELECT coalesce((SELECT min(id) FROM tokens), 1) AS first_token,
  coalesce(least((SELECT max(id) FROM tokens), (SELECT min(cursor) FROM mailroom_queue_states())), 0) AS last_token,
  coalesce((SELECT min(id) FROM mailroom_batches), 1) AS first_batch,
  coalesce((SELECT max(id) FROM mailroom_batches), 0) AS last_batch,
  coalesce((SELECT min(id) FROM mailroom_messages), 1) AS first_message,
  coalesce((SELECT max(id) FROM mailroom_messages), 0) AS last_message,
  coalesce((SELECT min(id) FROM mailroom_bounces), 1) AS first_bounce,
  coalesce((SELECT max(id) FROM mailroom_bounces), 0) AS last_bounce)")[0];
    const IdSpan tokens{row.number("first_token"), row.number("last_token")};
    const IdSpan batches{row.number("first_batch"), row.number("last_batch")};
    const IdSpan messages{row.number("first_message"), row.number("last_message")};
    const IdSpan bounces{row.number("first_bounce"), row.number("last_bounce")};
    const auto deliveries = delivery_spans();
    all_ids_ = tokens.size() + 2 * messages.size() + batches.size() + bounces.size();
    for (const auto& [queue, span] : deliveries)
      all_ids_ += span.size();
    summary_.held_back = find_held_back(connection_, summary_.before);
    const auto before = in_seconds(summary_.before);
    const bool dry_run = summary_.dry_run;
    const auto rows_to_read = std::max(window, step_);
    walk(tokens, summary_.tokens, [&](std::int64_t after) {
      return connection_.run_prepared("prune_tokens", after, tokens.last, tokens.last, before, rows_to_read,
                                      step_, dry_run);
    });
    walk(messages, summary_.messages, [&](std::int64_t after) {
      return connection_.run_prepared("prune_messages", after, messages.last, tokens.last, before,
                                      rows_to_read, step_, dry_run);
    });
    const auto contents_before = in_seconds(contents_before_);
    // The role of an operator that the documents had before there was this.
    summary_.keeps_contents =
        !connection_.run("SELECT has_table_privilege('mailroom_attachments', 'DELETE')").value<bool>();
    if (summary_.keeps_contents) {
      passed_ids_ += messages.size();
    } else {
      walk(messages, summary_.contents, [&](std::int64_t after) {
        return connection_.run_prepared("erase_contents", after, messages.last, tokens.last, contents_before,
                                        rows_to_read, step_, dry_run);
      });
    }
    walk(batches, summary_.batches, [&](std::int64_t after) {
      return connection_.run_prepared("prune_batches", after, batches.last, tokens.last, before, rows_to_read,
                                      step_, dry_run);
    });
    walk(bounces, summary_.bounces, [&](std::int64_t after) {
      return connection_.run_prepared("prune_bounces", after, bounces.last, before, step_, dry_run);
    });
    for (const auto& [queue, span] : deliveries) {
      walk(span, summary_.deliveries, [&, name = queue, last = span.last](std::int64_t after) {
        return connection_.run_prepared("prune_deliveries", name, after, last, tokens.last, before,
                                        rows_to_read, step_, dry_run);
      });
    }
  }

 private:
  /// The tokens between the first and the last delivery of each queue, also of those that were dropped.
  std::vector<std::pair<std::string, IdSpan>> delivery_spans() {
    std::vector<std::pair<std::string, IdSpan>> spans;
    for (const auto& row : connection_.run(R"(
SELECT q.name, (SELECT min(token) FROM mailroom_deliveries WHERE queue = q.name) AS first,
  (SELECT max(token) FROM mailroom_deliveries WHERE queue = q.name) AS last
FROM (SELECT job_type FROM jobs UNION SELECT name FROM mailroom_queues WHERE dropped_at IS NOT NULL) q (name)
ORDER BY q.name)")) {
      if (!row.is_null("first"))
        spans.emplace_back(row.text("name"), IdSpan{row.number("first"), row.number("last")});
    }
    return spans;
  }

  /// `step` runs the statement that continues after an id. It returns how many rows may be removed, how many
  /// it removed, how many foreign keys keep (other sessions had locked or changed the rest), and the id that
  /// it reached; null at the end.
  template <typename Step>
  void walk(const IdSpan& span, std::int64_t& removed, const Step& step) {
    for (auto after = span.first - 1; after < span.last && !summary_.stopped;) {
      const db::Row row = step(after)[0];
      const auto referred = row.optional<std::int64_t>("referred").value_or(0);
      removed += row.number("removed");
      summary_.skipped += row.number("old_rows") - row.number("removed") - referred;
      summary_.referred += referred;
      if (referred > 0) summary_.referred_by = row.text("referred_by");
      const auto reached = row.optional<std::int64_t>("reached").value_or(span.last);
      passed_ids_ += reached - after;
      after = reached;
      ask();
    }
  }

  void ask() {
    const auto fraction = static_cast<double>(passed_ids_) / static_cast<double>(all_ids_);
    const bool goes_on = go_on_({.fraction = fraction,
                                 .tokens = summary_.tokens,
                                 .messages = summary_.messages,
                                 .contents = summary_.contents,
                                 .batches = summary_.batches,
                                 .deliveries = summary_.deliveries,
                                 .bounces = summary_.bounces});
    summary_.stopped = !goes_on && passed_ids_ < all_ids_;
  }

  db::Connection& connection_;
  int step_;
  Moment contents_before_;
  const PruneObserver& go_on_;
  PruneSummary& summary_;
  std::int64_t all_ids_ = 0;
  std::int64_t passed_ids_ = 0;
};

}  // namespace

Pruner::Pruner(db::Connection& connection, const PruneAges& ages, int step)
    : connection_(connection),
      ages_(ages),
      before_(moment_before(connection, ages.records)),
      contents_before_(moment_before(connection, ages.contents)),
      step_(step) {
  connection_.run(session_sql);
  connection_.prepare("prune_tokens", "SELECT * FROM mailroom_prune_tokens($1, $2, $3, $4, $5, $6, $7)");
  connection_.prepare("prune_messages", "SELECT * FROM mailroom_prune_messages($1, $2, $3, $4, $5, $6, $7)");
  connection_.prepare("erase_contents",
                      "SELECT *, NULL AS referred FROM mailroom_erase_contents($1, $2, $3, $4, $5, $6, $7)");
  connection_.prepare("prune_batches", "SELECT * FROM mailroom_prune_batches($1, $2, $3, $4, $5, $6, $7)");
  connection_.prepare("prune_bounces", "SELECT * FROM mailroom_prune_bounces($1, $2, $3, $4, $5)");
  connection_.prepare(
      "prune_deliveries",
      "SELECT *, NULL AS referred FROM mailroom_prune_deliveries($1, $2, $3, $4, $5, $6, $7, $8)");
}

PruneSummary Pruner::count(const PruneObserver& go_on) {
  PruneSummary summary{.dry_run = true, .older_than = ages_.records, .before = before_};
  Pass(connection_, step_, contents_before_, go_on, summary).run();
  return summary;
}

PruneSummary Pruner::remove(const queue::OperationAuthor& author, const PruneObserver& go_on) {
  PruneSummary summary{.older_than = ages_.records, .before = before_};
  try {
    Pass(connection_, step_, contents_before_, go_on, summary).run();
  } catch (const db::ConnectionLost&) {
    throw;
  } catch (const Error&) {
    record(author, summary);
    throw;
  }
  record(author, summary);
  return summary;
}

void Pruner::record(const queue::OperationAuthor& author, const PruneSummary& summary) {
  if (summary.empty()) return;
  connection_.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, author);
    db::Connection::execute(transaction, R"(
SELECT mailroom_record_operation('prune', NULL, jsonb_build_object(
  'tokens', $1::bigint, 'messages', $8::bigint, 'contents', $9::bigint, 'batches', $2::bigint, 'deliveries', $7::bigint, 'bounces', $10::bigint, 'skipped', $3::bigint, 'referred', $11::bigint, 'older_than', $4::text,
  'before', to_char(to_timestamp($5::bigint) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
  'stopped', $6::boolean)))",
                            summary.tokens, summary.batches, summary.skipped, format_duration(ages_.records),
                            in_seconds(before_), summary.stopped, summary.deliveries, summary.messages,
                            summary.contents, summary.bounces, summary.referred);
  });
}

}  // namespace mailroom::prune
