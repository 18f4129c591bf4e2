// The oracle of the queue protocol for rewinds and replays under load: nothing is lost, every replayed token
// is emitted again, and no token is emitted twice unless an operator asked for it.

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "base/json.hpp"
#include "replay/resend.hpp"
#include "support/catch.hpp"
#include "support/reconcile_rig.hpp"
#include "support/test_collector.hpp"
#include "support/write_load.hpp"

namespace mailroom::test::rewind_load_test {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;  ///< half-open

/// Parses `{[1,4),[7,9)}` as PostgreSQL writes it.
std::vector<Range> parse_ranges(const std::string& text) {
  std::vector<Range> ranges;
  for (std::size_t at = text.find('['); at != std::string::npos; at = text.find('[', at + 1)) {
    const auto comma = text.find(',', at);
    ranges.emplace_back(std::stoll(text.substr(at + 1)), std::stoll(text.substr(comma + 1)));
  }
  return ranges;
}

/// An operator's decision from the records: which ids are to be emitted again after which state row.
struct Decision {
  std::int64_t state = 0;  ///< the batch row that the decision appended
  std::vector<Range> ids;
  bool covers(std::int64_t id) const {
    return std::any_of(ids.begin(), ids.end(), [&](auto r) { return id >= r.first && id < r.second; });
  }
};

/// The contents of the tables after the run.
struct Records {
  std::vector<Decision> decisions;                            ///< in order
  std::map<std::int64_t, std::vector<std::int64_t>> batches;  ///< the batches of each token, in order
  std::map<std::int64_t, int> cuts;  ///< how often a token was cut from a batch in flight
};

void read_decisions(db::Connection& connection, Records& records) {
  // Decisions and state rows are written under one lock, so both have the same order.
  const auto states =
      connection.run("SELECT id FROM mailroom_batches WHERE claimed_by LIKE 'rewinder %' ORDER BY id");
  const auto operations = connection.run("SELECT details FROM mailroom_operations ORDER BY id");
  REQUIRE(states.size() == operations.size());
  for (pqxx::result::size_type row = 0; row < operations.size(); ++row) {
    const auto details = parse_json(operations[row][0].c_str());
    Decision decision{.state = states[row][0].as<std::int64_t>(), .ids = {}};
    if (details.contains("ids")) {
      decision.ids = parse_ranges(details["ids"]);
    } else {
      decision.ids.emplace_back(details["cursor_after"].get<std::int64_t>() + 1,
                                details["cursor_before"].get<std::int64_t>() + 1);
    }
    records.decisions.push_back(std::move(decision));
    for (const auto& cut : details["cut"]) {
      for (const auto& [from, to] : parse_ranges(cut["ids"])) {
        for (auto id = from; id < to; ++id)
          ++records.cuts[id];
      }
    }
  }
}

Records read_records(db::Connection& connection) {
  Records records;
  read_decisions(connection, records);
  for (const auto& row :
       connection.run("SELECT id, ids FROM mailroom_batches WHERE NOT isempty(ids) ORDER BY id")) {
    for (const auto& [from, to] : parse_ranges(row[1].c_str())) {
      for (auto id = from; id < to; ++id)
        records.batches[id].push_back(row[0].as<std::int64_t>());
    }
  }
  return records;
}

struct ReplayVerdict {
  int not_replayed = 0;
  int doubled = 0;  ///< in two batches without a decision in between
  int not_written = 0;
  int written_too_often = 0;
};

void judge(const Records& records, std::int64_t id, int lines, ReplayVerdict& verdict) {
  const auto found = records.batches.find(id);
  const auto batches = found == records.batches.end() ? std::vector<std::int64_t>{} : found->second;
  for (const auto& decision : records.decisions) {
    const bool before =
        std::any_of(batches.begin(), batches.end(), [&](auto b) { return b < decision.state; });
    const bool after =
        std::any_of(batches.begin(), batches.end(), [&](auto b) { return b > decision.state; });
    if (before && decision.covers(id) && !after) ++verdict.not_replayed;
  }
  for (std::size_t i = 1; i < batches.size(); ++i) {
    const bool asked = std::any_of(records.decisions.begin(), records.decisions.end(), [&](const auto& d) {
      return d.covers(id) && batches[i - 1] < d.state && d.state < batches[i];
    });
    if (!asked) ++verdict.doubled;
  }
  // A token that was cut from a batch may have been written before; only cuts allow more lines than batches.
  const auto cut = records.cuts.find(id);
  const int allowed = static_cast<int>(batches.size()) + (cut == records.cuts.end() ? 0 : cut->second);
  verdict.not_written += lines < static_cast<int>(batches.size()) ? 1 : 0;
  verdict.written_too_often += lines > allowed ? 1 : 0;
}

/// Moves the cursor back by some ids, or resends the tokens of one account in seven.
void decide(db::Connection& connection, std::mt19937_64& random) {
  const auto cursor = value<std::int64_t>(connection, "SELECT cursor FROM mailroom_queue_state('mailroom')");
  const auto back = std::min<std::int64_t>(cursor, static_cast<std::int64_t>(random() % 400));
  if (random() % 2 == 0) {
    replay::ResendRequest resend{.queue = "mailroom"};
    for (const auto& row :
         connection.run("SELECT account FROM tokens WHERE id > $1 AND id % 7 = 0", cursor - back))
      resend.selection.accounts.push_back(row[0].as<std::int64_t>());
    if (!resend.selection.empty())
      replay::carry_out_resend(connection, {resend}, 100'000, {.actor = "tester", .reason = ""},
                               "token_insert");
    return;
  }
  const replay::RewindRequest request{
      .queue = "mailroom", .target = {replay::RewindTarget::Kind::id, cursor - back}, .max_replay = 100'000};
  const auto plan = replay::plan_rewind(connection, request);
  if (plan.is_forward()) return;
  replay::carry_out_rewind(connection, request, plan, {.actor = "tester", .reason = ""}, "token_insert");
}

}  // namespace

TEST_CASE("rewinds and replays beside two collectors and twelve writers lose and repeat nothing") {
  TestDatabase database;
  const auto connection = database.connect();
  const std::vector<std::string> options{"--format", "jsonl",           "--batch-limit",
                                         "20",       "--batch-timeout", "50ms"};
  TestCollector first(database, options);
  TestCollector second(database, options);
  REQUIRE(first.connected());
  REQUIRE(second.connected());

  const auto rewinder = database.connect("rewinder");
  std::mt19937_64 random(7);
  WriteLoad load(database, 12, 4000);
  for (int i = 0; i < 40; ++i) {
    await_tokens(*connection, 25);
    decide(*rewinder, random);
  }
  load.stop();

  const auto committed = committed_tokens(*connection);
  const bool drained = eventually([&] {
    return unfinished_work(*connection) == 0 &&
           value<std::int64_t>(*connection, "SELECT cursor FROM mailroom_queue_state('mailroom')") >=
               *committed.rbegin();
  });
  CHECK(first.stop() == 0);
  CHECK(second.stop() == 0);
  CHECK(drained);

  std::map<std::int64_t, int> lines;
  for (const auto& output : {first.output(), second.output()}) {
    for (const auto& [id, times] : emitted_ids(output))
      lines[id] += times;
  }
  const auto records = read_records(*connection);
  ReplayVerdict verdict;
  std::size_t lost = 0;
  for (const auto id : committed) {
    lost += lines.count(id) == 0 ? 1 : 0;
    judge(records, id, lines[id], verdict);
  }
  CAPTURE(committed.size(), records.decisions.size(), first.log(), second.log());
  CHECK(committed.size() >= 1000);
  CHECK(records.decisions.size() > 20);
  CHECK(lost == 0);
  CHECK(verdict.not_replayed == 0);
  CHECK(verdict.doubled == 0);
  CHECK(verdict.not_written == 0);
  CHECK(verdict.written_too_often == 0);
  const auto result = reconciled(*connection);
  CAPTURE(unexplained_in(result), classes_of(result));
  CHECK(result.faulty.empty());
}

}  // namespace mailroom::test::rewind_load_test
