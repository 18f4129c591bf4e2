#include "queue/remedy.hpp"

#include "db/errors.hpp"

namespace mailroom {

Remedy remedy_for(const Error& error) {
  const auto* refusal = dynamic_cast<const DatabaseError*>(&error);
  if (refusal == nullptr) return error.code() == ExitCode::database ? Remedy::new_session : Remedy::none;
  if (takes_no_writes(*refusal)) return Remedy::new_session;
  return is_transient(*refusal) ? Remedy::same_session : Remedy::none;
}

std::string reason_of(const Error& error) {
  return error.hint().empty() ? error.what() : error.what() + ("; " + error.hint());
}

}  // namespace mailroom
