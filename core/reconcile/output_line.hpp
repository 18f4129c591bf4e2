// The lines of mailroom collect as a reader gets them, in CSV or JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// A token as a consumer's line has it. Nothing is verified yet.
struct WrittenToken {
  std::string token;
  std::string code;

  bool operator==(const WrittenToken&) const = default;
};

/// A line that `mailroom collect` wrote.
struct OutputLine {
  std::optional<std::string> queue{};  ///< JSON names it
  std::vector<WrittenToken> tokens{};
};

/// Reads a line of either format, without its newline; nullopt if it is none, or torn.
std::optional<OutputLine> parse_output_line(std::string_view line);

}  // namespace mailroom
