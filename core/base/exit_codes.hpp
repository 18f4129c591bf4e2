// The exit codes as the manual and docs/exit-codes.md explain them to users.
#pragma once

#include <span>
#include <string_view>

namespace mailroom {

/// One exit status, or several of the same meaning, as documented for users.
struct ExitStatus {
  std::string_view status;  ///< `3`, or `130, 143`
  std::string_view meaning;
  std::string_view fix;  ///< empty for none
};

/// Every exit status, in numeric order; docs/exit-codes.md shows the same table.
std::span<const ExitStatus> exit_statuses();

}  // namespace mailroom
