#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::bench {

/// One token of a CSV line, as a collector or a rival writes it.
struct CollectedToken {
  std::string_view action, email, login, token, code;
};

/// Calls `each` for every token of `line`, which comes without its newline. Throws std::runtime_error for a
/// line that does not consist of groups of five values. The benchmark's addresses need no quotes.
void read_line(std::string_view line, const std::function<void(const CollectedToken&)>& each);

std::int64_t count_lines(const std::string& file);

/// Throws std::runtime_error unless the lines of `files` hold `expected` tokens in total.
void require_tokens(const std::vector<std::string>& files, std::int64_t expected);

}  // namespace mailroom::bench
