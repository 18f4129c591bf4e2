// The two formats of a line of mailroom collect, CSV and JSON.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "claim/queue_session.hpp"

namespace mailroom::compose {

/// The most bytes of a line with messages, unless one alone has more. A broker takes a megabyte at most,
/// unless it is told otherwise, and whoever reads a line has all of it in memory.
constexpr std::size_t longest_line = std::size_t{128} * 1024;

/// Turns the tokens of a batch into one line. Reused for all batches, so that it rarely allocates.
class Encoder {
 public:
  virtual ~Encoder() = default;

  virtual void begin(const claim::Lease& lease) = 0;
  /// `row.email`, `row.login` and `row.code` are printable; `token` is empty if the action has no path.
  /// False, with nothing added, if the line is to end before this token: it has others, and with the message
  /// of one it would be longer than longest_line.
  virtual bool add(const claim::TokenRow& row, std::string_view token) = 0;
  /// Returns the line with its newline; valid until the next begin().
  virtual std::string_view finish() = 0;
};

/// `action,email,login,token,code` for each token, joined by commas; quoted as RFC 4180 says. Throws
/// no_place_in_csv() for a token without a signature.
std::unique_ptr<Encoder> make_csv_encoder();

/// One JSON object: batch, queue, and the tokens with id, action, email, login, token, code and expires_at,
/// and the message that made it, if any.
std::unique_ptr<Encoder> make_jsonl_encoder();

/// RFC 4180: in double quotes, doubling those inside, if the value holds a comma, a quote, CR or LF.
void append_csv_value(std::string& line, std::string_view value);

}  // namespace mailroom::compose
