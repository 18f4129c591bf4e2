#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "fault/cluster.hpp"
#include "fault/scenario.hpp"
#include "fault/stepping_session.hpp"

namespace mailroom::test {

/// Moments of an order: each begin and end of a step is one.
using Tick = int;
constexpr Tick never = -1;

/// A step that was taken.
struct StepEvent {
  std::size_t session = 0;
  const ScriptStep* step = nullptr;
  Tick began = never;
  Tick ended = never;
  Tick committed = never;
  ServerAnswer answer{};
};

struct LeasedToken {
  std::int64_t id = 0;
  std::string name{};  ///< the part of its address before the @
  std::string state{};
};

/// A batch as a claim has returned it.
struct LeaseRecord {
  std::size_t session = 0;  ///< as many as there are scripts: the one that takes what is left
  std::string queue{};
  std::string batch{};
  int attempt = 0;
  std::vector<LeasedToken> tokens{};
  Tick began = never;      ///< of the claim
  Tick committed = never;  ///< of the claim
  bool is_acknowledged = false;
  bool is_gone = false;  ///< its program ended and had not acknowledged it
  Tick lost = never;     ///< when its session ended
  Tick kept = never;     ///< when another session got it
  std::set<std::int64_t> deferred{};
  std::set<std::int64_t> withheld{};
};

/// What came of one order.
struct History {
  std::vector<StepEvent> events{};
  std::vector<LeaseRecord> leases{};
  std::vector<std::string> trace{};
  Tick now = 0;
};

/// Plays orders of scenarios in one database.
class OrderPlayer {
 public:
  OrderPlayer(Cluster& cluster, std::string database);

  /// Call it before the first order of a scenario.
  void set_up(const Scenario& scenario);
  /// Takes the steps in the next of `orders`, and what is left in the queues after them. nullopt if the order
  /// does not differ from an earlier one.
  std::optional<History> play(const Scenario& scenario, StepOrders& orders);
  /// Reads what is in the database.
  db::Connection& controller() { return *controller_; }

 private:
  struct Actor {
    const Script* script = nullptr;
    std::size_t number = 0;
    std::size_t taken = 0;
    bool is_gone = false;
    bool is_lost = false;
    std::optional<std::size_t> event{};  ///< of the statement that is under way
    std::vector<std::size_t> uncommitted{};
    std::vector<std::size_t> unsure_leases{};
    std::vector<std::size_t> leases{};  ///< that it has not acknowledged
    std::optional<std::size_t> receipt{};
    std::optional<std::string> unflushed{};  ///< the batch of a claim whose commit does not wait for the disk
    std::set<std::int64_t> deferred{};
  };

  void begin_order(const Scenario& scenario);
  std::unique_ptr<SteppingSession> open_session(const Script& script);
  SteppingSession& session_of(const Actor& actor) { return *sessions_[actor.number]; }
  Standing standing_of(const Actor& actor) const;
  void take_step(Actor& actor);
  void send(Actor& actor, const ScriptStep& step);
  void send_claim(Actor& actor, const std::string& queue, int limit, bool holds);
  std::string outcomes_of(const Actor& actor, LeaseRecord& lease) const;
  void act_alone(Actor& actor, const ScriptStep& step);
  void attach(SteppingSession& session, const Script& script) const;
  void end_session(const Actor& actor);
  void end_program(const Actor& actor);
  void kill_server();
  /// Waits until each statement that is under way has ended or waits for another session.
  void settle();
  bool is_blocked(const Actor& actor);
  void finish_statement(Actor& actor, bool has_waited);
  void read_claim(Actor& actor, const StepEvent& event);
  void take_rest(const Scenario& scenario);
  bool is_woken(const Scenario& scenario);
  bool claim_rest(Actor& actor, const std::string& queue, int limit);
  void wait_for(Actor& actor);
  void trace(const Actor& actor, const std::string& what);

  Cluster& cluster_;
  std::string database_;
  std::unique_ptr<db::Connection> controller_;
  std::vector<std::unique_ptr<SteppingSession>> sessions_;
  std::set<std::size_t> detached_{};  ///< the sessions whose programs have ended
  const Scenario* scenario_ = nullptr;
  std::vector<Actor> actors_;
  Script rest_script_{.session = "rest"};
  ScriptStep rest_step_{.name = "takes what is left", .act = Act::claim};
  History history_;
  int played_ = 0;
};

}  // namespace mailroom::test
