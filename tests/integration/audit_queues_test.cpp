// The history of tokens in a database with several queues: the outcome in each, and in none that does not
// take it.

#include "accounts/suspension.hpp"
#include "cmd/audit/audit_report.hpp"
#include "replay/rewind.hpp"
#include "simulation/emission_watch.hpp"
#include "support/history_play.hpp"
#include "support/operator_rig.hpp"
#include "support/several_queues.hpp"

namespace mailroom::test::audit_queues_test {
namespace {

const std::vector<std::string> all{"recovery", "activation", "mailroom"};

/// Token 1 is an activation, token 3 a recovery.
struct Rig : DatabaseRig {
  Rig() {
    make_queue(*connection, "recovery", recoveries_only);
    make_queue(*connection, "activation", activations_only);
    insert_accounts(*connection, 2);
    connection->run("UPDATE accounts SET status = 'active' WHERE id = 2");
    connection->run("INSERT INTO tokens (account, action) VALUES (2, 'password_recovery')");
  }

  audit::TokenReport report(std::int64_t token, const std::vector<std::string>& queues = all) {
    return audit::read_token_history(*connection, token, {.queues = queues}).tokens.at(0);
  }

  /// `QUEUE OUTCOME` of each queue.
  Names outcomes(std::int64_t token, const std::vector<std::string>& queues = all) {
    Names outcomes;
    for (const auto& of_queue : report(token, queues).by_queue)
      outcomes.push_back(of_queue.queue + " " + fate::outcome_name(of_queue.status.outcome));
    return outcomes;
  }
};

}  // namespace

TEST_CASE("a token has an outcome in each queue that takes it") {
  Rig rig;
  CHECK(rig.outcomes(1) == Names{"activation waiting", "mailroom waiting"});
  CHECK(rig.outcomes(3) == Names{"recovery waiting", "mailroom waiting"});
  emit(*attach(rig.database, "activation"));
  CHECK(rig.outcomes(1) == Names{"activation emitted", "mailroom waiting"});
  CHECK(rig.outcomes(3) == Names{"recovery waiting", "mailroom waiting"});
  // The queue of activations has passed this token, and has not missed it.
  emit(*attach(rig.database));
  CHECK(rig.outcomes(3) == Names{"recovery waiting", "mailroom emitted"});
  const auto sentence = cmd::status_text(rig.report(3), Moment());
  CHECK(sentence.find(
            "token 3 (password_recovery): in queue recovery, not emitted yet: it waits in queue recovery; "
            "in queue mailroom, emitted once") == 0);
}

TEST_CASE("one requested queue is told of alone, and one that does not take the token never misses it") {
  Rig rig;
  emit(*attach(rig.database, "activation"));
  insert_accounts(*rig.connection, 1, "later");
  emit(*attach(rig.database));
  const auto in = [&](std::int64_t token, const std::string& queue) {
    return audit::read_token_history(*rig.connection, token, {.queues = {queue}, .only_queue = true})
        .tokens.at(0);
  };
  CHECK(in(1, "activation").by_queue.empty());
  CHECK(in(1, "activation").status.times == 1);
  CHECK(in(3, "recovery").status.outcome == fate::Outcome::waiting);
  CHECK(in(3, "activation").status.outcome == fate::Outcome::not_taken);
  CHECK(cmd::status_text(in(3, "activation"), Moment())
            .find(": not emitted: queue activation does not take its action, password_recovery; ") !=
        std::string::npos);
  drop_queue(*rig.connection, "recovery");
  rig.connection->run("DELETE FROM mailroom_batches WHERE queue = 'mailroom'");
  drop_queue(*rig.connection, "mailroom");
  CHECK(cmd::status_text(rig.report(3, {"activation"}), Moment())
            .find(": not emitted: no queue takes its action") != std::string::npos);
}

TEST_CASE("what a dropped queue emitted is told") {
  Rig rig;
  emit(*attach(rig.database, "activation"));
  drop_queue(*rig.connection, "activation");
  CHECK(rig.outcomes(1, {"recovery", "mailroom"}) == Names{"mailroom waiting", "activation emitted"});
}

TEST_CASE("each queue that skipped a token has an event for it") {
  Rig rig;
  rig.connection->run("UPDATE tokens SET expires_at = 1 WHERE id = 1");
  for (const auto& queue : {"activation", "mailroom"})
    emit(*attach(rig.database, queue));
  CHECK(rig.outcomes(1) == Names{"activation skipped", "mailroom skipped"});
  const auto history = audit::read_token_history(*rig.connection, 1, {.queues = all});
  std::vector<std::string> queues;
  for (const auto& event : history.timeline.entries) {
    if (event.kind == feed::EventKind::skipped) queues.push_back(event.queue());
  }
  CHECK(queues == std::vector<std::string>{"activation", "mailroom"});
}

TEST_CASE("a suspension is undone in every queue of collect.queue, each with its own tokens") {
  Rig rig;
  const OperatorRig shell(rig.database);
  const auto undo = [&](const std::string& queues) {
    return shell.mailroom({"suspend", "--undo", "--replay", "1", "--queue", queues, "-o", "json"}).output;
  };
  emit(*attach(rig.database, "mailroom"));
  REQUIRE(shell.mailroom({"suspend", "1", "--queue", "recovery,activation"}).status == 0);
  insert_accounts(*rig.connection, 1, "later");
  emit(*attach(rig.database, "activation"));
  CHECK(undo("recovery,mailroom").find(R"("replayed":0)") != std::string::npos);
  CHECK(undo("recovery,activation").find(R"("replayed":1)") != std::string::npos);
  CHECK(undo("recovery,activation").find(R"("replayed":0)") != std::string::npos);
  CHECK(rig.report(1).by_queue.at(0).status.outcome == fate::Outcome::in_replay);
  emit(*attach(rig.database, "activation"));
  CHECK(rig.outcomes(1) == Names{"activation emitted", "mailroom emitted"});
}

TEST_CASE("tail names the queue of each event when there are several") {
  Rig rig;
  const OperatorRig shell(rig.database);
  emit(*attach(rig.database, "mailroom"));
  emit(*attach(rig.database, "recovery"));
  const auto all_queues = shell.mailroom({"tail", "--state", "emitted"}).output;
  CHECK(all_queues.find(", queue mailroom, by ") != std::string::npos);
  CHECK(all_queues.find(", queue recovery, by ") != std::string::npos);
  drop_queue(*rig.connection, "recovery");
  drop_queue(*rig.connection, "activation");
  const auto one = shell.mailroom({"tail", "--state", "emitted"}).output;
  CHECK(one.find(", queue mailroom") == std::string::npos);
  CHECK(one.find(", queue recovery, by ") != std::string::npos);
}

TEST_CASE("simulate needs a queue for the tokens that it waits for") {
  Rig rig;
  drop_queue(*rig.connection, "mailroom");
  simulation::require_queue_for(*rig.connection, "activation");
  simulation::require_queue_for(*rig.connection, "password_recovery");
  drop_queue(*rig.connection, "recovery");
  const OperatorRig shell(rig.database);
  const auto run = shell.mailroom({"simulate", "--accounts", "1", "--activate", "100", "--recover", "100"});
  CHECK(run.status == 8);
  CHECK(run.errors.find("no queue takes password_recovery tokens, so none would be emitted") !=
        std::string::npos);
  CHECK(shell.mailroom({"simulate", "--accounts", "1"}).status == 0);
}

}  // namespace mailroom::test::audit_queues_test
