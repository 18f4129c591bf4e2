// The two formats of a line of mailroom collect, CSV and JSON.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "claim/queue_session.hpp"
#include "crypto/token.hpp"

namespace mailroom {

/// Turns the tokens of a batch into one line. Reused for all batches, so that it rarely allocates.
class Encoder {
 public:
  virtual ~Encoder() = default;

  virtual void begin(const Lease& lease) = 0;
  /// `row.email`, `row.login` and `row.code` are printable.
  virtual void add(const TokenRow& row, const TokenText& token) = 0;
  /// Returns the line with its newline; valid until the next begin().
  virtual std::string_view finish() = 0;
};

/// `action,email,login,token,code` for each token, joined by commas; quoted as RFC 4180 says.
std::unique_ptr<Encoder> make_csv_encoder();

/// One JSON object: batch, queue, and the tokens with id, action, email, login, token, code and expires_at.
std::unique_ptr<Encoder> make_jsonl_encoder();

/// RFC 4180: in double quotes, doubling those inside, if the value holds a comma, a quote, CR or LF.
void append_csv_value(std::string& line, std::string_view value);

}  // namespace mailroom
