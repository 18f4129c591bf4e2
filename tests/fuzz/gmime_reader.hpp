#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mailroom::fuzz {

/// A message as GMime reads it.
struct ReadMessage {
  std::vector<std::pair<std::string, std::string>>
      headers{};          ///< unfolded, not decoded; those of the body last
  int recipients = 0;     ///< of To
  std::string subject{};  ///< decoded
  std::vector<std::pair<std::string, std::string>> parts{};  ///< media type, and decoded content with LF
};

/// Throws std::runtime_error if GMime finds no message, or a part inside a part.
ReadMessage read_by_gmime(const std::string& message);

}  // namespace mailroom::fuzz
