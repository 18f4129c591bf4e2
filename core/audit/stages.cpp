// Lets the server compute the percentiles and the slowest tokens, in one statement that reads tokens once.

#include "audit/stages.hpp"

#include <fmt/format.h>

#include "audit/token_facts.hpp"
#include "audit/trace_ids.hpp"
#include "db/values.hpp"

namespace mailroom::audit {
namespace {

/// The commit of the transaction that wrote the row. Consuming a token writes its row anew: the time is then
/// later than the claim, and says nothing.
constexpr const char* commit_sql = "pg_xact_commit_timestamp(t.xmin)";

// A delivery may be accepted while other tokens of its batch are signed. $1 and $2 the period, $3 batches and
// $4 tokens as bigint[], null for all: then only the newest batches are read, each of which has a token. The
// batch of a replayed token that a sink has accepted is the one of the last acceptance.
std::string staged_sql(bool has_commits) {
  return fmt::format(R"(
WITH counted AS MATERIALIZED (
  SELECT b.id, b.emitted, sum(b.emitted) OVER (ORDER BY b.id DESC) AS so_far
  FROM (
    SELECT id, emitted FROM mailroom_batches
    WHERE claimed_at >= to_timestamp($1::bigint) AND claimed_at < to_timestamp($2::bigint)
      AND emitted_at IS NOT NULL AND emitted > 0 AND ($3::bigint[] IS NULL OR id = ANY ($3::bigint[]))
    ORDER BY id DESC LIMIT {1}) b),
newest AS MATERIALIZED (
  SELECT b.* FROM counted c, LATERAL (SELECT * FROM mailroom_batches WHERE mailroom_batches.id = c.id LIMIT 1) b
  WHERE $3::bigint[] IS NOT NULL OR c.so_far - c.emitted < {1}),
held AS MATERIALIZED (
  SELECT t.id AS token, b.queue, b.id AS batch, to_timestamp(t.created_at) AS created,
    c.at AS commit, b.claimed_at AS claimed, b.signed_at AS signed,
    CASE WHEN d.token IS NULL THEN b.written_at END AS written,
    CASE WHEN d.batch = b.id THEN coalesce(d.answered_at, d.accepted_at) END AS accepted
  FROM newest b
  CROSS JOIN LATERAL unnest(mailroom_batch_ids(b.ids, b.ids_mask)) u(g)
  CROSS JOIN LATERAL (
    SELECT tokens.id, tokens.created_at, tokens.xmin FROM tokens
    WHERE tokens.id >= lower(u.g) AND tokens.id < upper(u.g) AND ($4::bigint[] IS NULL OR tokens.id = ANY ($4::bigint[]))
    ORDER BY tokens.id DESC LIMIT {1}) t
  CROSS JOIN LATERAL (SELECT {0} AS at) c
  LEFT JOIN LATERAL (
    SELECT * FROM mailroom_deliveries
    WHERE mailroom_deliveries.queue = b.queue AND mailroom_deliveries.token = t.id LIMIT 1) d ON true
  ORDER BY b.id DESC, t.id DESC
  LIMIT {1}),
staged AS MATERIALIZED (
  SELECT token, queue, batch, created, CASE WHEN commit <= claimed THEN commit END AS committed, claimed,
    least(signed, accepted) AS signed, written, accepted, date_part('epoch', coalesce(accepted, written) - created) AS total
  FROM held WHERE coalesce(accepted, written) IS NOT NULL))",
                     has_commits ? commit_sql : "NULL::timestamptz", most_staged_tokens);
}

/// From one stage to another; the whole way last.
struct StagePair {
  TokenStage from;
  TokenStage to;
  const char* seconds;  ///< null where one of them is not known
};

constexpr std::array stage_pairs{StagePair{TokenStage::created, TokenStage::committed, "committed - created"},
                                 StagePair{TokenStage::created, TokenStage::claimed,
                                           "CASE WHEN committed IS NULL THEN claimed - created END"},
                                 StagePair{TokenStage::committed, TokenStage::claimed, "claimed - committed"},
                                 StagePair{TokenStage::claimed, TokenStage::signed_, "signed - claimed"},
                                 StagePair{TokenStage::signed_, TokenStage::written, "written - signed"},
                                 StagePair{TokenStage::signed_, TokenStage::accepted, "accepted - signed"},
                                 StagePair{TokenStage::created, TokenStage::written, "written - created"},
                                 StagePair{TokenStage::created, TokenStage::accepted, "accepted - created"}};

// A row for each pair of stages that some token has. A row for each token and pair, grouped by pair, took
// twice as long; so did extract(), which computes with numeric where date_part() gives a float8.
std::string times_sql() {
  std::string sums;
  std::string pairs;
  for (std::size_t i = 0; i < stage_pairs.size(); ++i) {
    const auto& pair = stage_pairs[i];
    const auto* comma = i == 0 ? "" : ",";
    sums += fmt::format(R"({0}
    count({2}) AS tokens{1},
    percentile_disc(ARRAY[0.5, 0.9, 0.99, 1]) WITHIN GROUP (ORDER BY date_part('epoch', {2})) AS seconds{1})",
                        comma, i, pair.seconds);
    pairs += fmt::format("{0} ({1}, {2}, {3}, tokens{1}, seconds{1})", comma, i, static_cast<int>(pair.from),
                         static_cast<int>(pair.to));
  }
  return fmt::format(R"(
summed AS (
  SELECT{} FROM staged),
times AS (
  SELECT p.* FROM summed, LATERAL (VALUES{}) p (place, from_stage, to_stage, tokens, seconds) WHERE p.tokens > 0))",
                     sums, pairs);
}

// The slowest tokens follow the stages, so that the tokens are read once.
std::string report_sql(bool has_commits) {
  std::string moments;
  for (const auto* stage : {"created", "committed", "claimed", "signed", "written", "accepted"})
    moments += ", " + db::microseconds_sql(stage) + " AS " + stage;
  return fmt::format(R"({},{},
slowest AS (
  SELECT token, queue, batch, total{} FROM staged ORDER BY total DESC, token LIMIT {})
SELECT t.from_stage, t.to_stage, t.tokens, t.seconds[1] AS p50, t.seconds[2] AS p90,
  t.seconds[3] AS p99, t.seconds[4] AS max, s.*
FROM times t FULL JOIN slowest s ON false
ORDER BY t.place, s.total DESC, s.token)",
                     staged_sql(has_commits), times_sql(), moments, most_slow_tokens);
}

/// The arguments of the statements above.
struct StageFilter {
  std::int64_t since = 0;
  std::int64_t until = 0;
  std::optional<std::string> batches{};
  std::optional<std::string> tokens{};
};

/// `{1,2}`
std::string bigint_array(const db::Rows& rows) {
  return db::array_text(rows.values<std::int64_t>());
}

/// Limits the statements to a subject: a batch, or tokens and the batches that hold them.
void narrow(pqxx::transaction_base& transaction, const StageSubject& subject, StageFilter& filter) {
  if (subject.batch) filter.batches = db::array_text(std::vector{*subject.batch});
  if (!subject.account && !subject.token) return;
  const auto tokens = subject.token
                          ? db::array_text(std::vector{*subject.token})
                          : bigint_array(db::Connection::execute(
                                transaction, "SELECT id FROM tokens WHERE account = $1", *subject.account));
  filter.tokens = tokens;
  filter.batches = bigint_array(db::Connection::execute(transaction, R"(
SELECT DISTINCT mailroom_batches_of($1::bigint[], to_timestamp(min(created_at)) - interval '1 hour', 'infinity')
FROM tokens WHERE id = ANY ($1::bigint[]) HAVING count(*) > 0)",
                                                        tokens));
}

StageTimes read_times(const db::Row& row) {
  const auto seconds = [&](db::ColumnName name) { return StageSeconds(row.number<double>(name)); };
  return {.from = static_cast<TokenStage>(row.number<int>("from_stage")),
          .to = static_cast<TokenStage>(row.number<int>("to_stage")),
          .tokens = row.number("tokens"),
          .p50 = seconds("p50"),
          .p90 = seconds("p90"),
          .p99 = seconds("p99"),
          .max = seconds("max")};
}

StagedToken read_staged(const db::Row& row) {
  StagedToken token{.token = row.number("token"),
                    .queue = row.text("queue"),
                    .batch = row.number("batch"),
                    .total = StageSeconds(row.number<double>("total"))};
  constexpr std::array<db::ColumnName, 6> moments{"created", "committed", "claimed",
                                                  "signed",  "written",   "accepted"};
  for (std::size_t i = 0; i < token.at.size(); ++i)
    token.at[i] = row.optional_moment<std::chrono::microseconds>(moments.at(i));
  return token;
}

void set_trace_ids(pqxx::transaction_base& transaction, std::vector<StagedToken>& tokens) {
  std::vector<std::int64_t> ids;
  for (const auto& token : tokens)
    ids.push_back(token.token);
  const auto traces = read_trace_ids(transaction, ids);
  for (auto& token : tokens) {
    if (const auto found = traces.find(token.token); found != traces.end()) token.trace_id = found->second;
  }
}

}  // namespace

const char* token_stage_name(TokenStage stage) {
  constexpr std::array names{"created", "committed", "claimed", "signed", "written", "accepted"};
  return names.at(static_cast<std::size_t>(stage));
}

StageReport read_stages(db::Connection& connection, const StageSubject& subject,
                        const AuditRequest& request) {
  return in_one_snapshot(connection, {}, [&](pqxx::transaction_base& transaction, Moment now) {
    const auto since = request.since.empty() && subject.is_everything() ? "24h" : request.since;
    StageReport report{.now = now, .period = parse_period(since, request.until, now)};
    if (request.until.empty() && subject.is_everything()) report.period.until = now + std::chrono::seconds(1);
    db::Connection::execute(transaction, "SET LOCAL jit = off");
    report.has_commits =
        db::Connection::execute(transaction, "SELECT current_setting('track_commit_timestamp')::boolean")
            .value<bool>();
    StageFilter filter{.since = in_seconds(std::max(report.period.since, Moment())),
                       .until = in_seconds(report.period.until)};
    narrow(transaction, subject, filter);
    for (const auto& row : db::Connection::execute(transaction, report_sql(report.has_commits), filter.since,
                                                   filter.until, filter.batches, filter.tokens)) {
      if (row.is_null("from_stage")) {
        report.slowest.push_back(read_staged(row));
      } else {
        report.stages.push_back(read_times(row));
      }
    }
    set_trace_ids(transaction, report.slowest);
    for (const auto& times : report.stages) {
      const bool is_whole_way = times.from == TokenStage::created && times.to >= TokenStage::written;
      if (is_whole_way) report.tokens += times.tokens;
    }
    return report;
  });
}

}  // namespace mailroom::audit
