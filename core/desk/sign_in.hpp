// Asks PostgreSQL whether somebody is a role, and how often somebody may guess.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "db/conninfo.hpp"
#include "desk/desk_sessions.hpp"

namespace mailroom::desk {

/// A session, or why there is none.
struct SignIn {
  std::shared_ptr<DeskSession> session{};
  std::string problem{};
  bool was_guess = false;  ///< the password was wrong
};

/// Opens a session of `role` where `target` says. The server must have asked for the password, and the role
/// must be no superuser and have the rights of a reader.
SignIn sign_in(const db::DatabaseTarget& target, const std::string& role, const std::string& password);

/// Wrong passwords by client. Not for several threads.
class DeskGuesses {
 public:
  static constexpr int most_in_a_minute = 10;

  /// True if the client has to wait before it may try again.
  bool are_too_many(const std::string& client, TimePoint now) const;
  /// Notes a wrong one; how long its answer waits: 1 s, 2 s, 4 s.
  Milliseconds add(const std::string& client, TimePoint now);

 private:
  struct Guesses {
    int count = 0;
    TimePoint since{};
  };
  std::map<std::string, Guesses> guesses_;
};

}  // namespace mailroom::desk
