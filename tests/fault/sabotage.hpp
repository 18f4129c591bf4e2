#pragma once

#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::test {

/// One replacement in the source of a function of the schema.
struct Breakage {
  std::string function;
  std::string from;
  std::string to;
};

/// A way of breaking the queue's protocol that a harness worth its name must notice.
struct Sabotage {
  std::string name;
  std::vector<Breakage> breakages;
  std::string fault;  ///< that shows it
  int rounds;         ///< of that fault
};

const std::vector<Sabotage>& sabotages();

/// Breaks the functions in `connection`'s database. Throws std::runtime_error when a text to be replaced is
/// not there (any more).
void break_protocol(Connection& connection, const Sabotage& sabotage);

}  // namespace mailroom::test
