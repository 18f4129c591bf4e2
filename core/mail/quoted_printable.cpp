// The encoding of texts in a mail: lines of at most 76 columns in which no careless relay changes anything.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "mail/message.hpp"

namespace mailroom::mail {
namespace {

/// The bytes that may stand for themselves anywhere but at the end of a line (blank and tab) or at its start.
constexpr auto is_literal = [] {
  std::array<bool, 256> literal{};
  for (std::size_t c = 0x20; c < 0x7F; ++c)
    literal[c] = c != '=';
  literal['\t'] = true;
  return literal;
}();

/// What stands for itself wherever in a line it comes. A function object, which is inlined where it is
/// passed.
constexpr auto is_plain_literal = [](char c) { return c > ' ' && is_literal[static_cast<unsigned char>(c)]; };

bool is_mistaken_at_start(std::string_view rest) {
  return rest.front() == '.' || rest.starts_with("From ");
}

/// The size of the line end at the front of `rest`; 0 if there is none.
std::size_t line_end(std::string_view rest) {
  return rest.starts_with('\n') ? 1 : rest.starts_with("\r\n") ? 2 : 0;
}

/// True if nothing follows the first character of `rest` in its line.
bool is_last_of_line(std::string_view rest) {
  return rest.size() == 1 || line_end(rest.substr(1)) > 0;
}

class Lines {
 public:
  explicit Lines(std::string& out) : out_(out) {}

  /// Appends what stands for itself at the front of `rest`, wherever in a line it comes, up to the last
  /// columns. Returns its size, which may be 0.
  std::size_t plain(std::string_view rest) {
    if (column_ == 0 && is_mistaken_at_start(rest)) return 0;
    const auto room = longest_encoded_line - 1 - std::min(column_, longest_encoded_line - 1);
    const auto within = rest.substr(0, room);
    const auto* const end = std::find_if_not(within.begin(), within.end(), is_plain_literal);
    const auto size = static_cast<std::size_t>(end - within.begin());
    out_.append(rest.substr(0, size));
    column_ += size;
    return size;
  }

  /// Appends the first character of `rest`.
  void literal(std::string_view rest) {
    make_room(1, rest);
    if (column_ == 0 && is_mistaken_at_start(rest)) return encoded(rest);
    out_ += rest.front();
    ++column_;
  }

  void encoded(std::string_view rest) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    make_room(3, rest);
    const auto byte = static_cast<unsigned char>(rest.front());
    out_ += '=';
    out_ += digits[byte >> 4U];
    out_ += digits[byte & 15U];
    column_ += 3;
  }

  void end() {
    out_ += "\r\n";
    column_ = 0;
  }

 private:
  /// The last column is for the equals sign of a soft line break, unless the line ends anyway.
  void make_room(std::size_t columns, std::string_view rest) {
    const auto end = column_ + columns;
    if (end < longest_encoded_line || (end == longest_encoded_line && is_last_of_line(rest))) return;
    out_ += "=\r\n";
    column_ = 0;
  }

  std::string& out_;
  std::size_t column_ = 0;
};

}  // namespace

void append_quoted_printable(std::string& out, std::string_view text) {
  Lines lines(out);
  const bool is_ended = text.ends_with('\n');
  while (!text.empty()) {
    text.remove_prefix(lines.plain(text));
    if (text.empty()) break;
    if (const auto size = line_end(text); size > 0) {
      lines.end();
      text.remove_prefix(size);
      continue;
    }
    const char c = text.front();
    const bool is_blank = c == ' ' || c == '\t';
    if (is_literal[static_cast<unsigned char>(c)] && !(is_blank && is_last_of_line(text))) {
      lines.literal(text);
    } else {
      lines.encoded(text);
    }
    text.remove_prefix(1);
  }
  if (!is_ended) lines.end();
}

}  // namespace mailroom::mail
