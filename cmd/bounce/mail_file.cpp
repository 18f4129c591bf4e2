// The format mbox is one of habit (RFC 4155): what ends a mail is told by the lines around it.

#include "cmd/bounce/mail_file.hpp"

#include <istream>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "bounce/bounce.hpp"

namespace mailroom::cmd {
namespace {

/// `From MAILER-DAEMON Thu Apr 29 23:34:45 2026`
bool is_separator(std::string_view line) {
  line = trimmed(line);
  const auto year = line.size() < 20 ? std::string_view() : line.substr(line.rfind(' ') + 1);
  const bool has_year = year.size() == 4 && year.find_first_not_of("0123456789") == std::string_view::npos;
  return line.starts_with("From ") && line.find(':') != std::string_view::npos && has_year;
}

bool is_field_line(std::string_view line) {
  const auto name = line.substr(0, line.find(':'));
  return name.size() < line.size() && !name.empty() &&
         name.find_first_of(" \t\r\n") == std::string_view::npos;
}

/// Knows whether an empty line ends the header of a part.
class PartHeader {
 public:
  void add(std::string_view line) {
    is_ended_ = is_open_ && trimmed(line).empty();
    if (line.starts_with("--")) {
      is_open_ = !trimmed(line).ends_with("--");
    } else {
      is_open_ = is_open_ && (is_field_line(line) || line.starts_with(' ') || line.starts_with('\t'));
    }
  }
  bool has_ended() const { return is_ended_; }

 private:
  bool is_open_ = false;
  bool is_ended_ = false;
};

void append_begin(std::string& mail, const std::string& line) {
  if (mail.size() < bounce::bounce_limits::max_bytes) mail += line;
}

}  // namespace

std::optional<std::string> MailFile::next() {
  if (has_begun_ && begin_.empty()) return std::nullopt;
  auto mail = std::exchange(begin_, {});
  std::string line;
  std::string separator;
  PartHeader part;
  bool is_behind_empty = false;
  while (read_line(line)) {
    if (!has_begun_) is_mbox_ = is_separator(line);
    has_begun_ = true;
    if (!separator.empty() && is_field_line(line)) {
      begin_ = separator + line;
      return mail;
    }
    append_begin(mail, std::exchange(separator, {}));
    if (is_mbox_ && is_behind_empty && !part.has_ended() && is_separator(line)) {
      separator = line;
    } else {
      append_begin(mail, line);
    }
    part.add(line);
    is_behind_empty = trimmed(line).empty();
  }
  has_begun_ = true;
  append_begin(mail, separator);
  return mail;
}

/// A line of any length is read in pieces.
bool MailFile::read_line(std::string& line) {
  constexpr std::size_t longest = 65536;
  line.clear();
  for (int c = in_.get(); c != std::istream::traits_type::eof(); c = in_.get()) {
    line += static_cast<char>(c);
    if (c == '\n' || line.size() == longest) break;
  }
  return !line.empty();
}

}  // namespace mailroom::cmd
