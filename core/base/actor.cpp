// Asks SUDO_USER before the user database, so that sudo does not hide the operator.

#include "base/actor.hpp"

#include <array>
#include <cstdlib>
#include <pwd.h>
#include <unistd.h>
#include <vector>

namespace mailroom {

std::string user_name() {
  const char* caller = std::getenv("SUDO_USER");
  if (caller != nullptr && *caller != '\0') return caller;
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return "uid " + std::to_string(geteuid());
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string operator_name() {
  return user_name() + "@" + host_name();
}

}  // namespace mailroom
