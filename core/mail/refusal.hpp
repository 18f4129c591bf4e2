// Returned, not thrown, for a value that cannot be mailed, so that one bad row stops no batch.
#pragma once

#include <string>

namespace mailroom {

/// Why a value must not become part of a mail, in plain words that quote nothing secret: `the local part has
/// 65 octets, at most 64 are allowed`. A row that cannot be mailed is a result, not an error.
struct Refusal {
  std::string reason;

  bool operator==(const Refusal&) const = default;
};

}  // namespace mailroom
