#pragma once

#include <span>
#include <string_view>

namespace mailroom {

/// One exit status, or several of the same meaning, as users are told of it.
struct ExitStatus {
  std::string_view status;  ///< `3`, or `130, 143`
  std::string_view meaning;
  std::string_view remedy;  ///< empty where there is none
};

/// Every exit status, in the order of the numbers; docs/exit-codes.md shows the same table.
std::span<const ExitStatus> exit_statuses();

}  // namespace mailroom
