// The actions that every database has, for tests of rows that never were in one.
#pragma once

#include "queue/action.hpp"

namespace mailroom::test {

inline const queue::Action* activation_action() {
  return queue::Actions::built_in().find("activation");
}

inline const queue::Action* recovery_action() {
  return queue::Actions::built_in().find("password_recovery");
}

/// Without a path, so that its tokens are not signed.
inline const queue::Action* message_action() {
  return queue::Actions::built_in().find("message");
}

}  // namespace mailroom::test
