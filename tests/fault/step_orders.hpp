#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace mailroom::test {

/// How a step uses a thing. Two that read it may be exchanged, and so may two that add to it.
enum class Use { reads, adds, writes };

/// The things that a step uses, by name.
using Uses = std::map<std::string, Use>;

/// True if nobody can tell in which order two steps of different sessions came.
bool commute(const Uses& one, const Uses& other);

/// Where a session is between two steps of an order.
struct Standing {
  bool can_go = true;  ///< its next step can be taken
  bool waits = false;  ///< the step that it has taken last waits for another session
};

/// All orders of the steps of some sessions, one after the other. Of orders that differ by exchanges of steps
/// that commute it gives one: it takes only sessions of a persistent set, and none that sleeps (Godefroid,
/// Partial-Order Methods for the Verification of Concurrent Systems, chapters 4 and 5).
class StepOrders {
 public:
  /// The uses of each step of each session.
  explicit StepOrders(std::vector<std::vector<Uses>> sessions) : sessions_(std::move(sessions)) {}

  /// Returns the session that takes the next step of the order; nullopt if what follows was seen in another
  /// order, or nobody can go. `standings`: of each session; they are the same whenever an order is repeated.
  std::optional<std::size_t> next(const std::vector<Standing>& standings);
  /// Begins the next order. False if there is none.
  bool advance();
  /// How many different places of orders there were so far.
  std::size_t states() const { return states_; }

 private:
  using Sessions = std::set<std::size_t>;

  /// A place in an order: who goes from here, who may, and who needs not since another order had it.
  struct Node {
    std::vector<std::size_t> taken;  ///< steps of each session
    Uses waiting;                    ///< what steps use that wait
    Sessions choice;
    Sessions asleep;
    std::size_t chosen = 0;
  };

  bool is_left(const Node& node, std::size_t session) const {
    return node.taken[session] < sessions_[session].size();
  }
  const Uses& next_uses(const Node& node, std::size_t session) const {
    return sessions_[session][node.taken[session]];
  }
  Node make_node(const std::vector<Standing>& standings) const;
  Sessions persistent(const Node& node, const Sessions& ready) const;
  bool may_disturb(const Node& node, std::size_t session, const Uses& uses) const;
  static bool choose(Node& node);

  std::vector<std::vector<Uses>> sessions_;
  std::vector<Node> nodes_;  ///< of the order, from its beginning
  std::size_t depth_ = 0;
  std::size_t states_ = 0;
};

}  // namespace mailroom::test
