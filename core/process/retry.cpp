#include "process/retry.hpp"

#include "db/errors.hpp"

namespace mailroom {

Retry retry_for(const Error& error) {
  const auto* refusal = dynamic_cast<const DatabaseError*>(&error);
  if (refusal == nullptr) return error.code() == ExitCode::database ? Retry::new_session : Retry::none;
  if (takes_no_writes(*refusal) || is_pid_locked(error)) return Retry::new_session;
  return is_transient(*refusal) ? Retry::same_session : Retry::none;
}

bool is_pid_locked(const Error& error) {
  const auto* refusal = dynamic_cast<const DatabaseError*>(&error);
  return refusal != nullptr && refusal->sqlstate() == "MR006";
}

std::string reason_of(const Error& error) {
  return error.hint().empty() ? error.what() : error.what() + ("; " + error.hint());
}

}  // namespace mailroom
