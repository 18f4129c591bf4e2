// What leaves the queue: a line of tokens, or the mail of one token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// The addresses of a mail; empty for a line.
struct Envelope {
  std::string from;  ///< without angle brackets; empty for the null sender
  std::string to;    ///< without angle brackets, its domain in ASCII
  bool needs_smtputf8 = false;
  std::string utf8_sender{};  ///< an address of the configuration that needs SMTPUTF8 for each mail; or empty
};

/// One message of a batch, as a carrier takes it.
struct Message {
  std::int64_t id = 0;       ///< comes back with the answer
  std::size_t endpoint = 0;  ///< the place of the one that it goes to among Carrier::endpoints()
  std::string queue{};
  std::int64_t batch = 0;
  int attempt = 0;                     ///< of the batch, and then of this message
  int line = 0;                        ///< its number in the batch, from 1
  std::string action{};                ///< `activation`, `password_recovery`, or `mixed`
  std::vector<std::int64_t> tokens{};  ///< their ids
  std::int64_t created_at = 0;         ///< of the newest of them, in seconds since 1970
  /// Of a line: `queue.batch.line.digest`, where the digest is of the ids and texts of the tokens. The same
  /// at each attempt, so that the other side can recognise a line that it has.
  std::string message_id{};
  /// A line as JSON without a newline, or header and body of a mail with CRLF line ends. Lives until the
  /// answer has been taken.
  std::string_view body{};
  Envelope envelope{};
};

}  // namespace mailroom
