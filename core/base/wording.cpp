// Suggestions by edit distance; an address is masked by whole characters.

#include "base/wording.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "base/printable.hpp"

namespace mailroom {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string masked_address(std::string_view address) {
  std::size_t first = address.empty() ? 0 : 1;
  while (first < address.size() && is_continuation(address[first]))
    ++first;
  const auto at = address.rfind('@');
  return std::string(address.substr(0, first)) + "***" +
         (at == std::string_view::npos ? "" : std::string(address.substr(at)));
}

std::string with_thousands(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t digits_from = number < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > digits_from + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

std::string shell_word(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_' || c == ',';
  });
  if (plain && !text.empty()) return text;
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string counted(std::int64_t count, std::string_view noun) {
  auto text = with_thousands(count).append(" ").append(noun);
  return count == 1 ? text : text + "s";
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = word.size() / 2 + 1;
  for (const auto& candidate : candidates) {
    const auto distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace mailroom
