// Parts of sentences for people: numbers, suggestions, masked addresses, and words of a command for a shell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// 1234567 as `1,234,567`.
std::string with_thousands(std::int64_t number);

/// `1 token`, `1,234 tokens`
std::string counted(std::int64_t count, std::string_view noun);

/// The candidate with the smallest edit distance to `word`; empty if none is within half the length of
/// `word`.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// Hides most of an address or login: `a***@mail.example`, `a***`.
std::string masked_address(std::string_view address);

/// Quotes `text` for a shell if needed.
std::string shell_word(const std::string& text);

}  // namespace mailroom
