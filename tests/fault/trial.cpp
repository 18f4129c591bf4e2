#include "fault/trial.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "fault/record_check.hpp"

namespace mailroom::test {
namespace {

constexpr Milliseconds start_is_seen_within{100};  ///< how often pg_ctl checks whether the server has started

constexpr auto slow_trigger =
    "CREATE FUNCTION slow_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF random() < 0.05 THEN PERFORM pg_sleep(random() * 0.03); END IF; RETURN NEW; END $$; "
    "CREATE TRIGGER slow_insert BEFORE INSERT ON tokens FOR EACH ROW EXECUTE FUNCTION slow_insert()";

std::vector<std::string> collector_options(const Trial::Options& options) {
  std::vector<std::string> words{"--format",        "jsonl", "--batch-limit", std::to_string(options.limit),
                                 "--batch-timeout", "100ms"};
  words.insert(words.end(), options.more.begin(), options.more.end());
  return words;
}

}  // namespace

Trial::Options calm_queue(int collectors) {
  return {.collectors = collectors,
          .writers = 3,
          .limit = 3,
          .load = {.plain = true, .tolerant = true, .pause_ms = 10},
          .slow_triggers = false};
}

Trial::Trial(Cluster& cluster, const Plan& plan, Options options)
    : TrialRig(cluster, plan), options_(std::move(options)) {
  const auto connection = connect();
  if (options_.slow_triggers) connection->run(slow_trigger);
  create_queues(*connection);
  if (options_.silent) connection->run("ALTER TABLE tokens DISABLE TRIGGER after_token_inserted");
  auto reach =
      options_.collectors_reach.empty() ? conninfo() : options_.collectors_reach + " dbname=" + database();
  crew_ = std::make_unique<Crew>(reach, options_.collectors, collector_options(options_),
                                 options_.environment, options_.serving);
  for (int i = 0; i < options_.collectors; ++i) {
    if (!crew_->member(i).connected())
      throw std::runtime_error("a collector did not connect: " + crew_->member(i).log());
  }
  start_writers(options_.writers_too ? reach : conninfo(), options_.writers, options_.load);
  crew_->begin_watch();
}

void Trial::expect_delivery_again() {
  const auto accepts = std::chrono::steady_clock::now() - start_is_seen_within;
  expect(crew_->writes_again(), "delivery resumes");
  const auto took = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - accepts);
  slowest_recovery_ = std::max(slowest_recovery_.value_or(Milliseconds{}), took);
}

void Trial::stop_writers() {
  const auto gap = crew_->end_watch();
  if (has_writers()) outcome_.longest_gap = gap;
  end_writers();
}

Outcome Trial::finish(int rounds) {
  outcome_.rounds = rounds;
  stop_writers();
  const auto connection = connect();
  // A two-phase commit that lost its writer would stay open.
  for (const auto& row :
       connection->run("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"))
    connection->run("COMMIT PREPARED '" + std::string(row[0].c_str()) + "'");
  expect(eventually([&] { return is_drained(*connection); }, patience_), "no open batch and no gap is left");
  for (const int status : crew_->stop())
    expect(status == 0, "a collector ends with 0 (" + std::to_string(status) + ")");
  if (slowest_recovery_)
    note("delivery resumed at most " + std::to_string(slowest_recovery_->count()) +
         " ms after the server accepts connections");
  judge();
  note_logs(crew_->logs());
  return outcome_;
}

void Trial::create_queues(db::Connection& connection) const {
  for (const auto& [queue, action] : options_.queues) {
    if (queue == "mailroom") continue;
    const auto definition = action.empty() ? "{}" : fmt::format(R"({{"actions": ["{}"]}})", action);
    connection.run("SELECT mailroom_create_queue($1, 0, $2::jsonb, 'token_insert')", queue, definition);
  }
}

void Trial::allow_repeats(int tokens, const std::vector<std::string>& queues) {
  allowed_ += static_cast<std::size_t>(tokens);
  for (const auto& [queue, action] : options_.queues) {
    if (queues.empty() || std::find(queues.begin(), queues.end(), queue) != queues.end())
      allowed_in_[queue] += static_cast<std::size_t>(tokens);
  }
}

void Trial::judge() {
  std::map<std::string, Emissions> emitted;
  try {
    emitted = emissions(crew_->outputs());
  } catch (const std::exception& error) {
    outcome_.problems.push_back(std::string("the output cannot be read: ") + error.what());
    return;
  }
  for (const auto& [queue, tokens] : emitted)
    expect(options_.queues.count(queue) > 0, "every line is of a known queue (" + queue + ")");
  for (const auto& [queue, action] : options_.queues)
    judge_queue(queue, action, emitted[queue]);
  const auto& tally = outcome_.tally;
  // What was truncated, or lost by the server, is in the output and not in the database.
  if (strange_allowed_) {
    account_for_tokens(*connect(), outcome_);
  } else {
    account_for_tokens(*connect(), crew_->outputs(), outcome_);
  }
  expect(tally.repeated <= allowed_, fmt::format("at most {} are repeated in all queues", allowed_));
  expect(tally.untimely == 0,
         fmt::format("no token is leased while its queue is paused, beyond its rate, or too late ({} are)",
                     tally.untimely));
}

void Trial::judge_queue(const std::string& queue, const std::string& action, const Emissions& emitted) {
  const auto tally = compare(committed(*connect(), action), emitted, replays_[queue]);
  const auto allowed = allowed_in_[queue];
  const auto prefix = options_.queues.size() > 1 ? queue + ": " : "";
  expect(tally.committed > 0, prefix + "something was committed");
  expect(tally.lost == 0, prefix + "nothing is lost");
  expect(tally.strange == 0 || strange_allowed_, prefix + "nothing is emitted that is not committed for it");
  expect(tally.repeated <= allowed,
         fmt::format("{}at most {} are repeated ({} are)", prefix, allowed, tally.repeated));
  if (!prefix.empty()) {
    const auto times = std::accumulate(emitted.begin(), emitted.end(), 0,
                                       [](int sum, const auto& each) { return sum + each.second; });
    note(fmt::format("{}{} committed, {} emitted in {} emissions, {} lost, {} of others, {} repeated", prefix,
                     tally.committed, tally.emitted, times, tally.lost, tally.strange, tally.repeated));
  }
  outcome_.tally += tally;
}

}  // namespace mailroom::test
