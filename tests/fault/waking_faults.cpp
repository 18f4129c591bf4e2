// Tokens that were inserted without a notification. The poll interval of the collectors is an hour.

#include <fmt/format.h>

#include "fault/trial.hpp"
#include "support/waking.hpp"

namespace mailroom::test {
namespace {

/// Transactions that insert while a burst keeps a collector polling, some of them prepared.
class Held {
 public:
  Held(Trial& trial, int round) : trial_(trial) {
    for (int i = 0; i < 5; ++i) {
      auto& connection = *connections_.emplace_back(trial.connect());
      const auto name = fmt::format("held{}-{}-", round, i);
      connection.run("BEGIN");
      insert_accounts(connection, 1 + i, name);
    }
    // PostgreSQL refuses it, and rolls it back, if it has notified.
    is_prepared_ = prepare_insert(*connections_.emplace_back(trial.connect()), name_of(round));
    prepared_ = name_of(round);
  }

  void commit() {
    for (std::size_t i = 0; i + 1 < connections_.size(); ++i) {
      // While a collector starts to listen, soon afterwards, and long afterwards.
      trial_.pause(0, i < 2 ? 20 : i < 4 ? 100 : 1000);
      connections_[i]->run("COMMIT");
    }
    if (is_prepared_) connections_.back()->run(fmt::format("COMMIT PREPARED '{}'", prepared_));
  }
  bool is_prepared() const { return is_prepared_; }

 private:
  static std::string name_of(int round) { return fmt::format("prepared{}-", round); }

  Trial& trial_;
  std::vector<std::unique_ptr<db::Connection>> connections_;
  std::string prepared_;
  bool is_prepared_ = false;
};

/// True if every token is emitted. Ids of rolled back tokens may still be in gaps.
bool is_delivered(db::Connection& connection) {
  return value<bool>(connection,
                     "SELECT (SELECT cursor FROM mailroom_queue_state('mailroom')) >= (SELECT "
                     "coalesce(max(id), 0) FROM tokens) "
                     "AND NOT EXISTS (SELECT FROM mailroom_batches WHERE emitted_at IS NULL) "
                     "AND NOT EXISTS (SELECT FROM mailroom_gaps h JOIN tokens t ON h.ids @> t.id)");
}

Outcome bursts(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan,
              {.collectors = 3,
               .writers = 0,
               .limit = 100,
               .slow_triggers = false,
               .more = {"--poll-interval", "1h"}});
  const auto connection = trial.connect();
  const bool conditional = plan.notifying == Notifying::when_listening;
  int silent = 0;
  int round = 0;
  bool delivered = true;
  // On a busy machine the collectors may listen again before anything is prepared: then nothing is shown yet.
  const auto has_shown = [&] { return !conditional || silent > 0; };
  for (; delivered && (round < plan.rounds || (!has_shown() && round < 10 * plan.rounds)); ++round) {
    auto load = std::make_unique<WriteLoad>(trial.conninfo(), 4,
                                            plan.seed * 1000 + static_cast<std::uint64_t>(round) * 10,
                                            WriteLoad::Options{.prepares = conditional,
                                                               .tolerant = true,
                                                               .pause_ms = 0,
                                                               .name = fmt::format("burst{}-", round)});
    trial.pause(20, 100);
    if (conditional)
      trial.expect(eventually([&] { return somebody_is_polling(*connection); }), "a collector is polling");
    Held held(trial, round);
    silent += held.is_prepared() ? 1 : 0;
    // The last transactions of the burst end meanwhile.
    std::thread end([&] { load.reset(); });
    held.commit();
    end.join();
    delivered = eventually([&] { return is_delivered(*connection); }, std::chrono::seconds(20));
    trial.expect(delivered, "what was committed is noticed");
  }
  if (!delivered) trial.give_up();
  // No notification follows a rollback; a poll deletes its gaps.
  if (delivered) connection->run("NOTIFY token_insert");
  trial.expect(conditional ? silent > 0 : silent == 0, "inserts notify when they should");
  trial.note(
      fmt::format("in {} of {} bursts a transaction was prepared that had not notified", silent, round));
  return trial.finish(round);
}

}  // namespace

std::vector<Fault> waking_faults() {
  return {{"bursts, committed while starting to listen", "all noticed, though no collector polls for an hour",
           60, 4, bursts, true}};
}

}  // namespace mailroom::test
