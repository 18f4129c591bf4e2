#pragma once

#include <cstdint>

namespace mailroom {

/// Ids from first to last, both included.
struct IdRun {
  std::int64_t first = 0;
  std::int64_t last = 0;

  bool operator==(const IdRun&) const = default;
};

}  // namespace mailroom
