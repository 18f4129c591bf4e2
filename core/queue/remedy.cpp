#include "queue/remedy.hpp"

#include "db/errors.hpp"

namespace mailroom {

Remedy remedy_for(const Error& error) {
  const auto* refusal = dynamic_cast<const DatabaseError*>(&error);
  if (refusal == nullptr) return error.code() == ExitCode::database ? Remedy::new_session : Remedy::none;
  if (takes_no_writes(*refusal) || is_pid_locked(error)) return Remedy::new_session;
  return is_transient(*refusal) ? Remedy::same_session : Remedy::none;
}

bool is_pid_locked(const Error& error) {
  const auto* refusal = dynamic_cast<const DatabaseError*>(&error);
  return refusal != nullptr && refusal->sqlstate() == "MR006";
}

std::string reason_of(const Error& error) {
  return error.hint().empty() ? error.what() : error.what() + ("; " + error.hint());
}

}  // namespace mailroom
