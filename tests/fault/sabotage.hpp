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

/// A way to break the queue's protocol that the harness must detect.
struct Sabotage {
  std::string name;
  std::vector<Breakage> breakages;
  std::string fault;          ///< the fault that shows it
  int rounds;                 ///< rounds of that fault
  bool leaves_trace = false;  ///< in the records, or in them and the output: reconcile must find it
};

const std::vector<Sabotage>& sabotages();
/// Those that no fault is made for, as it takes an order of statements to show them.
const std::vector<Sabotage>& order_sabotages();

/// Breaks the functions in `connection`'s database. Throws std::runtime_error when a function does not
/// contain the text to be replaced.
void break_protocol(db::Connection& connection, const Sabotage& sabotage);

}  // namespace mailroom::test
