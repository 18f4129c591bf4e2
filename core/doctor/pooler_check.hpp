#pragma once

#include "doctor/subject.hpp"

namespace mailroom {

/// Backend pids, of which a session of its own has the same one throughout.
struct PoolerFacts {
  int announced = 0;  ///< what the connection was told when it began
  int first = 0;      ///< what the server says
  int other = 0;      ///< what it says in a transaction of a second connection, begun afterwards
  int again = 0;      ///< what it says to the first one while that transaction is open
};

/// `other` and `again` count only where `announced` is not `first`.
PoolerKind judge_pooler(const PoolerFacts& facts);

}  // namespace mailroom
