#include "fault/handover_trial.hpp"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <limits>
#include <sstream>

#include "fault/record_check.hpp"
#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

/// What the other side has logged.
struct OtherSide {
  std::map<std::int64_t, int> taken;  ///< how often each token
  int unanswered = 0;                 ///< lines that it took and did not answer
};

OtherSide read_other_side(const std::string& path) {
  OtherSide side;
  std::istringstream log(read_file(path));
  for (std::string line; std::getline(log, line);) {
    if (line == "unanswered") ++side.unanswered;
    std::istringstream words(line);
    std::string id;
    int attempt = 0;
    if (!(words >> id >> attempt)) continue;
    for (std::int64_t token = 0; words >> token;)
      ++side.taken[token];
  }
  return side;
}

}  // namespace

HandoverTrial::HandoverTrial(Cluster& cluster, const Plan& plan, Options options, std::string log)
    : options_(std::move(options)),
      log_(std::move(log)),
      database_(make_database(cluster)),
      conninfo_(cluster.conninfo(database_)),
      admin_(cluster.conninfo("postgres")),
      random_(plan.seed),
      // A broken protocol leaves tokens for ever.
      patience_(plan.sabotage == nullptr ? options_.patience : std::chrono::seconds(10)) {
  if (plan.sabotage != nullptr) break_protocol(*connect(), *plan.sabotage);
  for (int i = 0; i < options_.collectors; ++i)
    collectors_.push_back(make());
  for (const auto& each : collectors_) {
    if (!each->connected()) throw std::runtime_error("a collector did not connect: " + each->log());
  }
  load_ = std::make_unique<WriteLoad>(conninfo_, options_.writers, plan.seed * 1000,
                                      WriteLoad::Options{.tolerant = true, .pause_ms = 40});
}

HandoverTrial::~HandoverTrial() {
  load_.reset();
  collectors_.clear();
  Connection(admin_, "harness").run("DROP DATABASE IF EXISTS " + database_ + " WITH (FORCE)");
}

std::unique_ptr<Connection> HandoverTrial::connect() const {
  return std::make_unique<Connection>(conninfo_, "harness");
}

std::unique_ptr<TestCollector> HandoverTrial::make() const {
  std::vector<std::string> words{"--batch-limit",     std::to_string(options_.limit),
                                 "--lines-per-claim", std::to_string(options_.lines),
                                 "--batch-timeout",   "50ms",
                                 "--ack-timeout",     "1s"};
  words.insert(words.end(), options_.more.begin(), options_.more.end());
  return std::make_unique<TestCollector>(conninfo_, words, options_.environment);
}

int HandoverTrial::replace(int index, int signal) {
  auto& place = collectors_.at(static_cast<std::size_t>(index));
  place->process().signal(signal);
  const int status = place->process().wait();
  logs_.push_back(place->log());
  place = make();
  return status;
}

void HandoverTrial::pause(int from_ms, int to_ms) {
  std::this_thread::sleep_for(Milliseconds(draw(from_ms, to_ms)));
}

void HandoverTrial::expect(bool met, const std::string& what) {
  if (!met) outcome_.problems.push_back("not so: " + what);
}

bool HandoverTrial::drains() {
  const auto connection = connect();
  auto fewest = std::numeric_limits<std::int64_t>::max();
  bool is_over = false;
  const auto progresses = [&] {
    connection->run(
        "UPDATE mailroom_deliveries SET not_before = clock_timestamp() WHERE not_before > clock_timestamp()");
    is_over =
        is_drained(*connection) &&
        value<int>(*connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = 'deferred'") == 0;
    const auto left = value<std::int64_t>(*connection, R"(
SELECT count(*) FROM tokens t
WHERE NOT EXISTS (SELECT FROM mailroom_deliveries d WHERE d.token = t.id AND d.state <> 'deferred'))");
    const bool is_less = left < fewest;
    fewest = std::min(fewest, left);
    return is_over || is_less;
  };
  // A server that has asked for a lower rate gets one, however long the backlog takes.
  while (!is_over) {
    if (!eventually(progresses, patience_)) return false;
  }
  return true;
}

Outcome HandoverTrial::finish(int rounds) {
  outcome_.rounds = rounds;
  load_.reset();
  expect(drains(), "every token reaches a final state");
  for (const auto& each : collectors_) {
    expect(each->connected(), "a collector connects");
    const int status = each->stop();
    expect(status == 0, fmt::format("a collector ends with 0 ({})", status));
    logs_.push_back(each->log());
  }
  judge();
  if (!outcome_.problems.empty()) {
    for (const auto& log : logs_)
      outcome_.notes.push_back("log: " + log.substr(log.size() > 600 ? log.size() - 600 : 0));
  }
  return outcome_;
}

void HandoverTrial::judge() {
  const auto side = read_other_side(log_);
  const auto connection = connect();
  auto& tally = outcome_.tally;
  std::set<std::int64_t> taken;
  for (const auto& [token, times] : side.taken) {
    tally.repeated += static_cast<std::size_t>(times - 1);
    taken.insert(token);
  }
  tally.emitted = taken.size();
  judge_records(*connection, taken);
  const auto allowed = static_cast<std::size_t>(allowed_ + side.unanswered * options_.limit);
  outcome_.notes.push_back(fmt::format("{} lines taken and not answered", side.unanswered));
  account_for_tokens(*connection, outcome_);
  expect(tally.committed > 0, "something was committed");
  expect(tally.lost == 0, "every token is taken or has a final state");
  expect(tally.strange == 0, "no token is taken that is not committed");
  expect(tally.repeated <= allowed, fmt::format("at most {} tokens are taken again", allowed));
}

void HandoverTrial::judge_records(Connection& connection, const std::set<std::int64_t>& taken) {
  auto& tally = outcome_.tally;
  int wrong = 0;
  std::set<std::int64_t> known;
  for (const auto& row : connection.run(R"(
SELECT t.id, coalesce(d.state, ''), d.accepted_at IS NOT NULL
FROM tokens t LEFT JOIN mailroom_deliveries d ON d.queue = 'mailroom' AND d.token = t.id
WHERE t.expires_at > t.created_at)")) {
    const auto token = row[0].as<std::int64_t>();
    const bool was_taken = taken.count(token) > 0;
    const auto state = row[1].as<std::string>();
    known.insert(token);
    if (!was_taken && state != "rejected" && state != "expired" && state != "cancelled") ++tally.lost;
    // What is recorded as accepted has been taken.
    if (row[2].as<bool>() && !was_taken) ++wrong;
  }
  tally.committed = known.size();
  for (const auto token : taken)
    tally.strange += known.count(token) == 0 ? 1 : 0;
  expect(wrong == 0, fmt::format("what is recorded as accepted has been taken ({} were not)", wrong));
}

}  // namespace mailroom::test
