#pragma once

#include "bench/stage.hpp"

namespace mailroom::bench {

/// A database as forty days of use leave it, so that a quarter of its tokens are older than what prune keeps.
/// All of them were emitted in batches of 100 and half of them consumed; after them, `due` tokens wait.
struct GrownDatabase {
  std::string name;
  std::int64_t emitted = 0;
  std::int64_t due = 0;
  std::int64_t accounts = 0;
};

constexpr std::int64_t grown_days = 40;

/// Built on first use; three accounts for ten tokens.
GrownDatabase grown_database(Stage& stage, int millions);

}  // namespace mailroom::bench
