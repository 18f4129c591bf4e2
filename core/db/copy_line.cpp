// Parses rows of COPY, for libpqxx 6, which streams no views. Unescapes within the line, so that a row costs
// no allocation.

#include <algorithm>
#include <stdexcept>

#include "db/pqxx_compat.hpp"

namespace mailroom::db {
namespace {

char escaped(char c) {
  constexpr std::string_view letters = "bfnrtv";
  constexpr std::string_view characters = "\b\f\n\r\t\v";
  const auto at = letters.find(c);
  return at == std::string_view::npos ? c : characters[at];
}

std::string_view unescape(std::span<char> field) {
  auto from = std::find(field.begin(), field.end(), '\\');
  auto to = from;
  while (from != field.end()) {
    if (++from == field.end()) throw std::invalid_argument("a line of COPY ends in a backslash");
    if (*from == 'N' && field.size() == 2) return {};
    *to++ = escaped(*from++);
    const auto next = std::find(from, field.end(), '\\');
    to = std::copy(from, next, to);
    from = next;
  }
  return {field.data(), static_cast<std::size_t>(to - field.begin())};
}

}  // namespace

void split_copy_line(std::span<char> line, std::span<std::string_view> fields) {
  for (auto& field : fields) {
    if (line.data() == nullptr) throw std::invalid_argument("a line of COPY has too few fields");
    const auto end = static_cast<std::size_t>(std::find(line.begin(), line.end(), '\t') - line.begin());
    field = unescape(line.first(end));
    line = end < line.size() ? line.subspan(end + 1) : std::span<char>();
  }
  if (line.data() != nullptr) throw std::invalid_argument("a line of COPY has too many fields");
}

}  // namespace mailroom::db
