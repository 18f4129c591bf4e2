// Packs many runs into arrays for one statement. Short runs share a row, with a byte for each id.

#include <fmt/format.h>

#include "db/values.hpp"
#include "reconcile/queue_ledger.hpp"

namespace mailroom::reconcile {
namespace {

/// A run of fewer ids shares a row of the request with its neighbours: a byte for each id says which run.
constexpr std::int64_t shortest_row = 64;
constexpr std::size_t longest_block = 8192;
constexpr std::size_t most_situations_of_block = 255;
constexpr int tokens_at_once = 10'000;

/// The arrays that a statement reads the runs from: a row is a range of ids in one situation, or a block of
/// short runs. Slots are numbered from 1, in the order of `situations`.
class CountRequest {
 public:
  CountRequest(const std::vector<Situation>& situations, const std::vector<TokenCounter::Run>& runs,
               std::int64_t now)
      : situations_(situations), now_(now) {
    for (const auto& run : runs)
      add(run);
    end_block();
  }

  std::string firsts() const { return db::array_text(firsts_); }
  std::string ends() const { return db::array_text(ends_); }
  std::string bases() const { return db::array_text(bases_); }
  std::string blocks() const { return db::array_text(blocks_); }
  std::string seconds() const { return db::array_text(seconds_); }
  std::string passed_seconds() const { return db::array_text(passed_seconds_); }
  std::int64_t first() const { return firsts_.empty() ? 0 : firsts_.front(); }
  std::int64_t end() const { return ends_.empty() ? 0 : ends_.back(); }
  std::size_t situation_of(int slot) const { return slots_.at(static_cast<std::size_t>(slot) - 1); }
  bool has_blocks() const { return has_blocks_; }

 private:
  void add(const TokenCounter::Run& run) {
    if (run.end - run.first >= shortest_row) {
      end_block();
      add_row(run.first, run.end, "NULL");
      add_slot(run.situation);
      return;
    }
    const bool fits = !bytes_.empty() &&
                      block_first_ + static_cast<std::int64_t>(bytes_.size() / 2) == run.first &&
                      bytes_.size() / 2 < longest_block && block_slots_.size() < most_situations_of_block;
    if (!fits) end_block();
    if (bytes_.empty()) block_first_ = run.first;
    const auto digits = fmt::format("{:02x}", place_in_block(run.situation));
    for (auto id = run.first; id < run.end; ++id)
      bytes_ += digits;
  }

  std::size_t place_in_block(std::size_t situation) {
    for (std::size_t i = block_slots_.size(); i-- > 0;) {
      if (block_slots_[i] == situation) return i;
    }
    block_slots_.push_back(situation);
    return block_slots_.size() - 1;
  }

  void end_block() {
    if (bytes_.empty()) return;
    add_row(block_first_, block_first_ + static_cast<std::int64_t>(bytes_.size() / 2),
            "\"\\\\x" + bytes_ + "\"");
    has_blocks_ = true;
    for (const auto situation : block_slots_)
      add_slot(situation);
    bytes_.clear();
    block_slots_.clear();
  }

  void add_row(std::int64_t first, std::int64_t end, std::string block) {
    firsts_.push_back(first);
    ends_.push_back(end);
    bases_.push_back(static_cast<int>(slots_.size()) + 1);
    blocks_.push_back(std::move(block));
  }

  void add_slot(std::size_t situation) {
    slots_.push_back(situation);
    seconds_.push_back(situations_[situation].second());
    passed_seconds_.push_back(situations_[situation].passed_second(now_));
  }

  const std::vector<Situation>& situations_;
  std::int64_t now_;
  std::vector<std::int64_t> firsts_, ends_, seconds_, passed_seconds_;
  std::vector<int> bases_;
  std::vector<std::string> blocks_;
  std::vector<std::size_t> slots_;
  std::string bytes_;  ///< of the block, in hexadecimal
  std::int64_t block_first_ = 0;
  std::vector<std::size_t> block_slots_;
  bool has_blocks_ = false;
};

// Flags of a token, in the order of their bits.
constexpr int was_consumed = 1;
constexpr int was_expired = 2;
constexpr int is_early = 4;
constexpr int will_be_tried = 8;
constexpr int was_accepted = 16;
constexpr int was_cancelled = 32;
constexpr int was_replaced = 64;

// $1 to $4 the rows of the request, $5 and $6 the seconds of each slot, $7 and $8 the period, $9 before which
// second records are incomplete, $10 queue, $11 and $12 the first id and the end of all rows. The limit keeps
// the planner from reading all tokens, whatever the statistics say. The seconds of a range are computed once,
// not once a token, which OFFSET 0 ensures.
constexpr const char* tokens_sql = R"(
FROM (
  SELECT u.*, ($5::bigint[])[u.base] AS second, ($6::bigint[])[u.base] AS passed_second
  FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::bytea[]) u (first, past, base, block) OFFSET 0) u
CROSS JOIN LATERAL (
  SELECT id, action, created_at, expires_at, consumed_at, message FROM tokens
  WHERE id >= u.first AND id < u.past AND created_at >= $7::bigint AND created_at < $8::bigint
  ORDER BY id LIMIT 9000000000000000000) t)";

// What decides the outcome of a token, by the row of the request that has it.
constexpr const char* ranges_sql = R"(
CROSS JOIN LATERAL (SELECT u.base AS slot, u.second, u.passed_second) s)";

constexpr const char* blocks_sql = R"(
CROSS JOIN LATERAL (
  SELECT u.base + CASE WHEN u.block IS NULL THEN 0 ELSE get_byte(u.block, (t.id - u.first)::int) END AS slot) p
CROSS JOIN LATERAL (
  SELECT p.slot, ($5::bigint[])[p.slot] AS second, ($6::bigint[])[p.slot] AS passed_second) s)";

// An outcome that was recorded before the token was created was that of another token with the id.
constexpr const char* deliveries_sql = R"(
LEFT JOIN mailroom_deliveries d
  ON d.queue = $10 AND d.token = t.id AND d.token >= $11::bigint AND d.token < $12::bigint
  AND floor(extract(epoch FROM d.last_at)) >= t.created_at)";

// What came back of a mail since it was last answered, or acknowledged, whichever was first: it can come
// between the two.
constexpr const char* reports_sql = R"(
LEFT JOIN (
  SELECT DISTINCT ON (b.token) b.token, b.at, mailroom_reported_outcome(b.kind) AS outcome,
    CASE b.kind WHEN 'hard' THEN 'hard, ' WHEN 'soft' THEN 'soft, ' ELSE '' END || b.reason AS report
  FROM mailroom_bounces b
  WHERE b.queue = $10 AND b.token >= $11::bigint AND b.token < $12::bigint AND mailroom_reported_outcome(b.kind) IS NOT NULL
  ORDER BY b.token, mailroom_report_rank(b.kind) DESC, b.id DESC) r ON r.token = t.id AND r.at >= least(d.accepted_at, d.answered_at))";

// Each statement has the same parameters.
constexpr const char* all_used_sql = " WHERE $10::text IS NOT NULL AND $11::bigint <= $12::bigint";

TokenFact read_fact(const db::Row& row) {
  const auto flags = row.number<int>("flags");
  return {.action = row.text("action"),
          .created_late = row.optional<std::int64_t>("late"),
          .was_consumed = (flags & was_consumed) != 0,
          .was_expired = (flags & was_expired) != 0,
          .was_cancelled = (flags & was_cancelled) != 0,
          .was_replaced = (flags & was_replaced) != 0,
          .is_early = (flags & is_early) != 0,
          .delivered = fate::find_outcome(row.view("outcome")),
          .was_accepted = (flags & was_accepted) != 0,
          .will_be_tried = (flags & will_be_tried) != 0,
          .reported = fate::find_outcome(row.view("reported")),
          .report = row.text("report")};
}

template <typename... Arguments>
db::Rows run_request(pqxx::transaction_base& transaction, const std::string& sql, const CountRequest& request,
                     const Arguments&... arguments) {
  return db::Connection::execute(transaction, sql, request.firsts(), request.ends(), request.bases(),
                                 request.blocks(), request.seconds(), request.passed_seconds(), arguments...,
                                 request.first(), request.end());
}

}  // namespace

std::string TokenCounter::facts_sql() const {
  const auto* outcome = record_.has_deliveries ? "coalesce(d.state, '')" : "''";
  const auto delivered = record_.has_deliveries
                             ? fmt::format(R"(+ CASE WHEN d.not_before IS NULL THEN 0 ELSE {} END
    + CASE WHEN floor(extract(epoch FROM d.accepted_at)) >= t.created_at THEN {} ELSE 0 END)",
                                           will_be_tried, was_accepted)
                             : "";
  return fmt::format(R"(
  s.slot, t.action, CASE WHEN t.created_at > s.second THEN t.created_at END AS late,
  CASE WHEN t.consumed_at <= s.passed_second THEN {} ELSE 0 END
    + CASE WHEN t.expires_at <= s.passed_second THEN {} ELSE 0 END
    + CASE WHEN t.message IS NULL OR t.consumed_at > s.passed_second THEN 0
           ELSE CASE {} WHEN 'cancelled' THEN {} WHEN 'replaced' THEN {} ELSE 0 END END
    + CASE WHEN t.created_at < $9::bigint THEN {} ELSE 0 END {} AS flags, {} AS outcome, {} AS reported, {} AS report)",
                     was_consumed, was_expired, db::consumed_as_sql, was_cancelled, was_replaced, is_early,
                     delivered, outcome, record_.has_reports ? "coalesce(r.outcome, '')" : "''",
                     record_.has_reports ? "coalesce(r.report, '')" : "''");
}

std::string TokenCounter::rows_sql(bool has_blocks) const {
  return fmt::format("{}{}{}{}{}", tokens_sql, has_blocks ? blocks_sql : ranges_sql,
                     record_.has_deliveries ? deliveries_sql : "", record_.has_reports ? reports_sql : "",
                     all_used_sql);
}

void TokenCounter::count(const std::vector<Situation>& situations, const std::vector<Run>& runs,
                         const OnCount& on_count) {
  const CountRequest request(situations, runs, scope_.now);
  const auto sql =
      fmt::format("SELECT{}, count(*){} GROUP BY 1, 2, 3, 4{}{}", facts_sql(), rows_sql(request.has_blocks()),
                  record_.has_deliveries ? ", 5" : "", record_.has_reports ? ", 6, 7" : "");
  for (const auto& row : run_request(transaction_, sql, request, scope_.since, scope_.until,
                                     record_.incomplete_before, record_.queue))
    on_count(request.situation_of(row.number<int>("slot")), read_fact(row), row.number("count"));
}

void TokenCounter::list(const std::vector<Situation>& situations, const std::vector<Run>& runs,
                        const OnToken& on_token) {
  const CountRequest request(situations, runs, scope_.now);
  const auto sql = fmt::format("DECLARE mailroom_listed NO SCROLL CURSOR FOR SELECT{}, t.id{} ORDER BY t.id",
                               facts_sql(), rows_sql(request.has_blocks()));
  run_request(transaction_, sql, request, scope_.since, scope_.until, record_.incomplete_before,
              record_.queue);
  const auto fetch = fmt::format("FETCH FORWARD {} FROM mailroom_listed", tokens_at_once);
  for (auto rows = db::Connection::execute(transaction_, fetch); !rows.empty();
       rows = db::Connection::execute(transaction_, fetch)) {
    for (const auto& row : rows)
      on_token(request.situation_of(row.number<int>("slot")), read_fact(row), row.number("id"));
  }
  db::Connection::execute(transaction_, "CLOSE mailroom_listed");
}

}  // namespace mailroom::reconcile
