// Words may come from the database.

#include "submission/reply.hpp"

#include <fmt/format.h>

namespace mailroom::submission {

std::string Reply::line() const {
  // RFC 5321, 4.5.3.1.5: a line of a reply has 512 octets.
  constexpr std::size_t most_words = 480;
  std::string text;
  for (const char c : words.substr(0, most_words))
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return status.empty() ? fmt::format("{} {}\r\n", code, text)
                        : fmt::format("{} {} {}\r\n", code, status, text);
}

}  // namespace mailroom::submission
