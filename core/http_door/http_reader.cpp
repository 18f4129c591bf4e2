// One state for each part of a request. A line ends with CRLF, and with nothing else: whoever takes another
// end could see another request than a proxy in front.

#include "http_door/http_reader.hpp"

#include <algorithm>
#include <cctype>

#include "base/encoded_text.hpp"
#include "base/text.hpp"

namespace mailroom::http_door {
namespace {

constexpr std::size_t most_head = 32768;
constexpr std::size_t most_line = 8192;
constexpr std::size_t most_headers = 100;

/// RFC 9110, section 5.6.2.
bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

bool has_word(std::string_view list, std::string_view word) {
  const auto all = lower_case(list);
  for (const auto part : split(all, ','))
    if (trimmed(part) == word) return true;
  return false;
}

}  // namespace

std::optional<std::string_view> Request::header(std::string_view name) const {
  const auto found =
      std::ranges::find(headers, name, [](const auto& each) { return std::string_view(each.first); });
  if (found == headers.end()) return std::nullopt;
  return std::string_view(found->second);
}

HttpReader::Event HttpReader::broken(std::string_view why) {
  problem_ = why;
  state_ = State::broken;
  keeps_alive_ = false;
  return Event::malformed;
}

HttpReader::Event HttpReader::larger() {
  state_ = State::broken;
  keeps_alive_ = false;
  return Event::too_large;
}

void HttpReader::go_on(bool keeps) {
  keeps_body_ = keeps;
  state_ = is_chunked_ ? State::chunk_size : left_ > 0 ? State::body : State::whole;
}

Request HttpReader::take_request() {
  auto request = std::exchange(request_, {});
  state_ = State::first_line;
  head_size_ = left_ = body_size_ = 0;
  is_chunked_ = wants_continue_ = false;
  keeps_body_ = true;
  return request;
}

HttpReader::Event HttpReader::take(std::string_view& bytes) {
  for (;;) {
    auto event = Event::more;
    switch (state_) {
      case State::head:
        return Event::head;
      case State::whole:
        return Event::whole;
      case State::broken:
        bytes = {};
        return Event::more;
      case State::body:
      case State::chunk:
        event = take_body(bytes);
        break;
      default:
        event = take_line(bytes);
    }
    if (event != Event::more) return event;
    if (bytes.empty() && state_ != State::whole && state_ != State::head) return Event::more;
  }
}

HttpReader::Event HttpReader::take_line(std::string_view& bytes) {
  const auto end = bytes.find('\n');
  const auto part = bytes.substr(0, end);
  if (line_.size() + part.size() > most_line) return larger();
  line_ += part;
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  if (end == std::string_view::npos) return Event::more;
  if (!line_.ends_with('\r')) return broken("a line does not end with CRLF");
  line_.pop_back();
  head_size_ += line_.size() + 2;
  if (head_size_ > most_head) return larger();
  const auto whole = std::exchange(line_, {});
  return line(whole);
}

HttpReader::Event HttpReader::line(std::string_view text) {
  switch (state_) {
    case State::first_line:
      // RFC 9112, section 2.2: an empty line before a request is ignored.
      return text.empty() ? Event::more : first_line(text);
    case State::headers:
      return text.empty() ? end_of_head() : header(text);
    case State::chunk_size:
      return chunk_size(text);
    case State::chunk_end:
      if (!text.empty()) return broken("a chunk is longer than it says");
      state_ = State::chunk_size;
      return Event::more;
    default:  // trailers, which mean nothing here
      if (text.empty()) state_ = State::whole;
      return Event::more;
  }
}

HttpReader::Event HttpReader::first_line(std::string_view text) {
  const auto first = text.find(' ');
  const auto second = text.find(' ', first == std::string_view::npos ? first : first + 1);
  if (second == std::string_view::npos || text.find(' ', second + 1) != std::string_view::npos ||
      has_control(text))
    return broken("the first line is no request");
  request_.method = text.substr(0, first);
  request_.path = text.substr(first + 1, second - first - 1);
  const auto version = text.substr(second + 1);
  is_old_ = version == "HTTP/1.0";
  if (!is_token(request_.method) || !request_.path.starts_with('/'))
    return broken("the first line is no request");
  if (!is_old_ && version != "HTTP/1.1") return broken("the version is not HTTP/1.1");
  keeps_alive_ = !is_old_;
  state_ = State::headers;
  return Event::more;
}

HttpReader::Event HttpReader::header(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || !is_token(text.substr(0, colon)))
    return broken("a header has no name");
  const auto value = trimmed(text.substr(colon + 1));
  if (has_control(value)) return broken("a header has a control character");
  if (request_.headers.size() >= most_headers) return larger();
  request_.headers.emplace_back(lower_case(text.substr(0, colon)), value);
  return Event::more;
}

/// RFC 9112, section 6.3: two lengths are refused, since a proxy in front may take the other one.
HttpReader::Event HttpReader::end_of_head() {
  std::size_t lengths = 0;
  std::size_t encodings = 0;
  std::optional<std::size_t> length;
  for (const auto& [name, value] : request_.headers) {
    if (name == "content-length") {
      ++lengths;
      length = parse_number<std::size_t>(value);
      if (!length || value.find_first_not_of("0123456789") != std::string::npos)
        return broken("Content-Length is no number");
    } else if (name == "transfer-encoding") {
      ++encodings;
      if (lower_case(value) != "chunked") return broken("Transfer-Encoding is not chunked");
      is_chunked_ = true;
    } else if (name == "connection") {
      if (has_word(value, "close")) keeps_alive_ = false;
      if (is_old_ && has_word(value, "keep-alive")) keeps_alive_ = true;
    } else if (name == "expect") {
      wants_continue_ = lower_case(value) == "100-continue" && !is_old_;
    }
  }
  if (lengths + encodings > 1) return broken("the length is given twice");
  if (is_chunked_ && is_old_) return broken("HTTP/1.0 has no chunks");
  if (!is_old_ && !request_.header("host")) return broken("Host is missing");
  left_ = length.value_or(0);
  state_ = State::head;
  // Whoever asks for it is told before the body comes.
  return left_ > most_body_ ? larger() : Event::head;
}

HttpReader::Event HttpReader::chunk_size(std::string_view text) {
  const auto digits = trimmed(text.substr(0, text.find(';')));
  if (digits.empty() || digits.size() > 8 ||
      !std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; }))
    return broken("a chunk has no size");
  left_ = 0;
  for (const char c : digits)
    left_ = left_ * 16 + static_cast<std::size_t>(hex_value(c));
  // Lines of chunks count for themselves: there may be many.
  head_size_ = 0;
  state_ = left_ == 0 ? State::trailers : State::chunk;
  return body_size_ + left_ > most_body_ ? larger() : Event::more;
}

HttpReader::Event HttpReader::take_body(std::string_view& bytes) {
  const auto part = bytes.substr(0, left_);
  if (keeps_body_) request_.body += part;
  body_size_ += part.size();
  left_ -= part.size();
  bytes.remove_prefix(part.size());
  if (left_ == 0) state_ = state_ == State::chunk ? State::chunk_end : State::whole;
  return Event::more;
}

}  // namespace mailroom::http_door
