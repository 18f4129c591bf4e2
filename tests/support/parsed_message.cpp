#include "support/parsed_message.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/pattern.hpp"

namespace mailroom::test {
namespace {

using Lines = std::vector<std::string>;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("a message breaks a rule: " + what);
}

Lines crlf_lines(const std::string& message) {
  Lines lines;
  for (std::size_t at = 0; at < message.size();) {
    const auto end = message.find("\r\n", at);
    require(end != std::string::npos, "every line ends in CRLF");
    lines.push_back(message.substr(at, end - at));
    const auto& line = lines.back();
    require(line.find_first_of(std::string("\r\n\0", 3)) == std::string::npos, "no other line end, no NUL");
    require(line.size() <= 998, "a line has at most 998 octets");
    require(!line.starts_with('.'), "no line begins with a dot");
    at = end + 2;
  }
  return lines;
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\t'; });
}

using Headers = std::vector<std::pair<std::string, std::string>>;

/// Takes the headers and the empty line after them off the front of `lines`.
Headers take_headers(Lines& lines, bool is_utf8) {
  Headers headers;
  while (true) {
    require(!lines.empty(), "an empty line ends the headers");
    const auto line = lines.front();
    lines.erase(lines.begin());
    if (line.empty()) return headers;
    if (line.starts_with(' ')) {
      require(!headers.empty() && line.find_first_not_of(' ') != std::string::npos, "a fold continues");
      headers.back().second += line;
    } else {
      const auto colon = line.find(": ");
      require(colon != std::string::npos && line.find(' ') == colon + 1, "a header is a name and a value");
      headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
    }
    const auto& name = headers.back().first;
    const bool holds_address = name == "From" || name == "To" || name == "Reply-To";
    require(is_ascii(line) || (is_utf8 && holds_address), "a header is ASCII");
    // Addresses, ids and values of unknown syntax have no place for a fold.
    const bool is_foldable = name == "Date" || name == "Subject" || name == "Auto-Submitted" ||
                             name == "MIME-Version" || name.starts_with("Content-");
    require(line.size() <= 76 || !is_foldable, "a header is folded at 76 columns");
  }
}

const std::string& value_of(const Headers& headers, const std::string& name) {
  const auto is_it = [&](const auto& header) { return header.first == name; };
  const auto found = std::find_if(headers.begin(), headers.end(), is_it);
  require(std::count_if(headers.begin(), headers.end(), is_it) == 1, "one header " + name);
  return found->second;
}

int digit(char c) {
  require((c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'), "a hexadecimal digit in upper case");
  return c <= '9' ? c - '0' : c - 'A' + 10;
}

char byte_at(const std::string& text, std::size_t at) {
  require(at + 2 < text.size(), "two digits after an equals sign");
  return static_cast<char>(digit(text[at + 1]) * 16 + digit(text[at + 2]));
}

std::string decoded_body(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) {
    require(is_ascii(line), "a body is ASCII");
    require(line.size() <= 76, "a line of a body has at most 76 columns");
    require(line.empty() || (line.back() != ' ' && line.back() != '\t'), "no line ends in a blank");
    const bool is_soft = line.ends_with('=');
    for (std::size_t i = 0; i + (is_soft ? 1 : 0) < line.size(); ++i) {
      if (line[i] != '=') {
        text += line[i];
        continue;
      }
      text += byte_at(line, i);
      i += 2;
    }
    if (!is_soft) text += '\n';
  }
  return text;
}

void check_part(const Headers& headers, const std::string& type) {
  require(value_of(headers, "Content-Type") == type + "; charset=utf-8", "a part is " + type);
  require(value_of(headers, "Content-Transfer-Encoding") == "quoted-printable", "a part is quoted-printable");
}

/// Takes a part off the front of `lines`: its headers, its body, and the boundary after it.
std::string take_part(Lines& lines, const std::string& type, const std::string& boundary) {
  check_part(take_headers(lines, false), type);
  const auto end = std::find(lines.begin(), lines.end(), boundary);
  require(end != lines.end() && end != lines.begin() && std::prev(end)->empty(), "a boundary ends a part");
  const auto text = decoded_body({lines.begin(), std::prev(end)});
  lines.erase(lines.begin(), end + 1);
  return text;
}

std::string decoded_word(const std::string& content) {
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (content[i] == '=') {
      text += byte_at(content, i);
      i += 2;
    } else {
      text += content[i] == '_' ? ' ' : content[i];
    }
  }
  return text;
}

}  // namespace

const std::string& ParsedMessage::header(const std::string& name) const {
  return value_of(headers, name);
}

std::vector<std::string> ParsedMessage::names() const {
  std::vector<std::string> all;
  for (const auto& [name, value] : headers)
    all.push_back(name);
  return all;
}

ParsedMessage parse_message(const std::string& message, bool is_utf8) {
  auto lines = crlf_lines(message);
  ParsedMessage parsed{.headers = take_headers(lines, is_utf8), .text = {}, .html = std::nullopt};
  const auto& type = parsed.header("Content-Type");
  static const Pattern multipart("multipart/alternative; boundary=\"(=_[0-9a-f]{16})\"");
  const auto match = multipart.whole(type);
  if (!match) {
    check_part(parsed.headers, "text/plain");
    parsed.text = decoded_body(lines);
    return parsed;
  }
  const auto boundary = "--" + (*match)[1];
  require(!lines.empty() && lines.front() == boundary, "the body begins with a boundary");
  lines.erase(lines.begin());
  parsed.text = take_part(lines, "text/plain", boundary);
  parsed.html = take_part(lines, "text/html", boundary + "--");
  require(lines.empty(), "nothing follows the last boundary");
  return parsed;
}

std::string decoded_words(const std::string& value) {
  constexpr std::string_view start = "=?utf-8?Q?";
  std::string text;
  bool is_after_word = false;
  for (std::size_t at = 0; at < value.size();) {
    const auto word = value.find(start, at);
    const auto between = value.substr(at, word - at);
    const bool is_blank = between.find_first_not_of(' ') == std::string::npos;
    if (!is_after_word || !is_blank || word == std::string::npos) text += between;
    if (word == std::string::npos) break;
    const auto content = word + start.size();
    const auto end = value.find("?=", content);
    require(end != std::string::npos && end + 2 - word <= 75, "an encoded word has at most 75 columns");
    text += decoded_word(value.substr(content, end - content));
    at = end + 2;
    is_after_word = true;
  }
  return text;
}

std::string as_part(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    result += text[i];
  }
  if (result.empty() || result.back() != '\n') result += '\n';
  return result;
}

}  // namespace mailroom::test
