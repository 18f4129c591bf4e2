// Lines on their way to a carrier, with what the sink remembers of each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "consumer/encoder.hpp"
#include "delivery/carrier.hpp"
#include "delivery/delivery_policy.hpp"
#include "delivery/pace.hpp"

namespace mailroom {

/// A token of a line, and what the sink needs to judge its answer.
struct CarriedToken {
  MailHistory history;
  std::string text;  ///< which no answer may repeat
  std::int64_t created_at = 0;
};

/// One line of a batch.
struct CarriedLine {
  Parcel parcel;
  std::string body;  ///< what the parcel shows
  std::vector<CarriedToken> tokens;
  int tries = 0;                ///< how often it was submitted
  bool is_in_flight = false;    ///< the carrier has it, and reads `body`
  bool may_be_taken = false;    ///< one of them was not answered
  TimePoint first_submitted{};  ///< with tries > 0
  TimePoint submitted{};        ///< the last time
  Refusals refusals{};
};

/// Puts the tokens of a batch into lines of at most `limit` tokens: the JSON of `collect --format jsonl`.
class LineWriter {
 public:
  LineWriter() : encoder_(make_jsonl_encoder()) {}

  void begin(const Lease& lease, int limit);
  /// True if the line is full, and to be taken.
  bool add(const TokenRow& row, const TokenText& token, MailHistory history);
  bool is_empty() const { return tokens_.empty(); }
  /// The line that was begun; the next one begins. The parcel gets its id, attempt and body from the sink.
  CarriedLine take();

 private:
  std::unique_ptr<Encoder> encoder_;
  Lease lease_;
  int limit_ = 0;
  int lines_ = 0;  ///< that were taken
  std::string action_;
  std::string signed_text_;
  std::vector<CarriedToken> tokens_;
};

/// `queue.batch.line.digest`: the queue with `%XX` for all but letters, digits, `-` and `_`, and 128 bits of
/// the SHA-256 of `signed_text` as 32 hexadecimal digits.
std::string message_id_of(const Lease& lease, int line, std::string_view signed_text);

}  // namespace mailroom
