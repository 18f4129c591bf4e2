// The sessions that this process has open, so that what the server runs for it ends with it.
#pragma once

#include <cstddef>

#include "base/error.hpp"

namespace mailroom::db {

class Connection;

/// A signal ended the command; the statement that ran has ended in the server.
class Interrupted : public Error {
 public:
  explicit Interrupted(int signal);
};

/// Called by Connection at its beginning and end.
void add_session(Connection& connection);
void remove_session(Connection& connection);

/// From here on each statement ends with Interrupted, as one does that cancel_running_statements() cancels.
void interrupt_statements(int signal);
/// The signal of interrupt_statements(); 0 before that.
int interrupting_signal();

/// Has the server end what it runs for this process. Returns how many sessions were busy. For any thread but
/// one that runs a statement.
std::size_t cancel_running_statements();

}  // namespace mailroom::db
