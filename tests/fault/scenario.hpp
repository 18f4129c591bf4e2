#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fault/step_orders.hpp"

namespace mailroom::test {

enum class Act {
  statement,
  claim,         ///< acknowledges what the session has, and takes the next batch
  ask_withheld,  ///< asks which tokens of its batch must not leave
  die,           ///< the program ends, and its session: what it has not acknowledged, it has not emitted
  lose_session,  ///< the session ends, the program lives
  reconnect,     ///< has a new session
  keep_leases,   ///< has its leases given to the new session
  kill_server,   ///< ends the server without a checkpoint, and starts it again
};

/// What the oracle concludes from a statement that has committed.
enum class Means {
  nothing,
  inserts,
  cancels,
  replaces,
  pauses,
  resumes,
  unsubscribes,
  rewinds,
  judges,
  asks
};

/// What a session does next.
struct ScriptStep {
  std::string name;  ///< in a trace
  Act act = Act::statement;
  std::string sql{};
  Uses uses{};
  Means means = Means::nothing;
  std::string subject{};  ///< a login, the reference of a message, an address or a queue
  std::string queue = "mailroom";
  int limit = 10;
  bool holds = false;  ///< of a claim: keeps its batch, and does not acknowledge it
};

/// What one session does.
struct Script {
  std::string session;
  std::vector<ScriptStep> steps{};
  bool may_die = false;   ///< at each point
  bool delivers = false;  ///< its claims record outcomes
  bool defers = false;    ///< the first attempt at each token is deferred
};

/// Sessions whose steps come in every order, and what is there when they begin.
struct Scenario {
  std::string name;
  std::vector<Script> scripts;
  std::vector<std::string> finds;      ///< the sabotages that it has to find
  std::vector<std::string> once{};     ///< statements for the database
  std::vector<std::string> setup{};    ///< statements for each order
  std::vector<std::string> cleanup{};  ///< statements after each order
  std::vector<std::string> queues{"mailroom"};
  std::optional<int> burst{};                ///< so many tokens may be leased
  bool is_long = false;                      ///< not for a short run
  bool delivers = false;                     ///< what is left is taken with outcomes
  std::optional<std::size_t> released_by{};  ///< the session that makes the last tokens of the schedule
  /// What is left is taken only if this session was notified, or was told at last of transactions that may
  /// not notify.
  std::optional<std::size_t> woken{};
};

std::vector<Scenario> queue_scenarios();
std::vector<Scenario> consumer_scenarios();
std::vector<Scenario> message_scenarios();

}  // namespace mailroom::test
