#pragma once

#include <string>
#include <utility>
#include <vector>

namespace mailroom::test {

/// A part without parts of its own.
struct ReadPart {
  std::string type{};         ///< `text/plain`
  std::string disposition{};  ///< `attachment`, `inline`, or empty
  std::string name{};         ///< of the file, decoded
  std::string content_id{};
  std::string content{};  ///< decoded
};

/// A message as GMime reads it.
struct ReadMessage {
  std::vector<std::pair<std::string, std::string>>
      headers{};                                          ///< unfolded, not decoded; those of the body last
  std::vector<std::pair<std::string, std::string>> to{};  ///< name, decoded, and address
  std::vector<std::pair<std::string, std::string>> cc{};  ///< the same
  std::string subject{};                                  ///< decoded
  std::string shape{};  ///< `mixed(alternative(text/plain text/html) image/png)`
  std::vector<ReadPart> parts{};
};

/// Throws std::runtime_error if GMime finds no message, or a part that is neither a leaf nor of several
/// parts.
ReadMessage read_by_gmime(const std::string& message);

/// What a reader shows of the value of a header: its encoded words (RFC 2047) as they are meant.
std::string decoded_by_gmime(const std::string& value);

/// `text` with LF for each CRLF.
std::string with_lf(const std::string& text);

}  // namespace mailroom::test
