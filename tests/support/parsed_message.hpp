#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mailroom::test {

/// A message taken apart again, by code that shares nothing with the builder.
struct ParsedMessage {
  std::vector<std::pair<std::string, std::string>> headers;  ///< unfolded, not decoded
  std::string text;                                          ///< decoded, line ends are LF
  std::optional<std::string> html;

  /// The only header of this name; throws std::runtime_error if there is none or another.
  const std::string& header(const std::string& name) const;
  std::vector<std::string> names() const;
};

/// Throws std::runtime_error for a message that breaks a rule: every line ends in CRLF and has at most 998
/// octets, in a body 76; no line begins with a dot; no NUL; ASCII, except headers that hold an address if
/// `is_utf8`; both parts quoted-printable.
ParsedMessage parse_message(const std::string& message, bool is_utf8 = false);

/// Decodes the encoded words of an unfolded header; blanks between two of them are dropped (RFC 2047,
/// section 6.2).
std::string decoded_words(const std::string& value);

/// `text` as a part has it: CRLF is LF, and the last line has an end.
std::string as_part(const std::string& text);

}  // namespace mailroom::test
