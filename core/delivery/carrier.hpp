// What leaves the queue, a line of tokens, a mail or several mails, and the interface to what carries it to
// its receiver: a program, an HTTP server, NATS, RabbitMQ or SMTP relays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "delivery/answer.hpp"
#include "delivery/clearance.hpp"

namespace mailroom::delivery {

/// The addresses of a mail; empty for a line.
struct Envelope {
  std::string from;  ///< without angle brackets; empty for the null sender
  std::string to;    ///< without angle brackets, its domain in ASCII
  bool needs_smtputf8 = false;
  bool needs_8bit = false;  ///< 8BITMIME (RFC 6152)
  /// Of the copy, for a relay that offers DSN (RFC 3461) and for one of a provider, printable and without
  /// blanks; or empty.
  std::string id{};
  std::string author{};  ///< the address of the header From, with that of the envelope if a program chose it
  std::string utf8_sender{};  ///< an address of the configuration that needs SMTPUTF8 for each mail; or empty
};

/// The domain of the recipient, in lower case.
inline std::string domain_of(const Envelope& envelope) {
  return lower_case(std::string_view(envelope.to).substr(envelope.to.rfind('@') + 1));
}

/// One of several mails that a message has.
struct PackedMail {
  std::int64_t token = 0;
  Envelope envelope{};
  std::size_t size = 0;  ///< of its bytes
};

/// One message of a batch, as a carrier takes it.
struct Message {
  std::int64_t id = 0;       ///< comes back with the answer
  std::size_t endpoint = 0;  ///< the place of the one that it goes to among Carrier::endpoints()
  std::string queue{};
  std::int64_t batch = 0;
  int attempt = 0;                     ///< of the batch, and then of this message
  int line = 0;                        ///< its number in the batch, from 1
  std::string action{};                ///< of its tokens, as the database names it, or `mixed`
  std::vector<std::int64_t> tokens{};  ///< their ids
  std::int64_t created_at = 0;         ///< of the newest of them, in seconds since 1970
  /// Of a line: `queue.batch.line.digest`, where the digest is of the ids and texts of the tokens. The same
  /// at each attempt, so that the receiver can recognise a line that it has.
  std::string message_id{};
  /// A line as JSON without a newline, or header and body of a mail with CRLF line ends. Lives until the
  /// answer has been taken.
  std::string_view body{};
  Envelope envelope{};
  bool has_files = false;    ///< a mail with attachments
  bool is_raw = false;       ///< a mail that its program has made: nothing of it may be changed
  bool was_refused = false;  ///< an earlier attempt at it, or at one of its tokens
  /// Of several mails: what differs, while `body` has one after the other. Empty for a line and for one mail.
  std::vector<PackedMail> mails{};
  /// Asked before the receiver could take the message; null: it may leave.
  std::shared_ptr<Clearance> clearance{};
  /// Of a mail with a topic: each attempt has a clearance of its own from here. Null for others.
  std::shared_ptr<Permits> permits{};

  /// Waits until it may leave. False: it must not, and goes back untried.
  bool awaits_clearance() const { return clearance == nullptr || clearance->wait(); }
  bool is_cleared() const { return clearance == nullptr || clearance->is_given(); }
  /// The clearance of the next attempt; null: it may begin.
  std::shared_ptr<Clearance> clearance_of_attempt() const {
    return permits == nullptr ? clearance : permits->permit(clearance, tokens);
  }
};

/// Hands messages over to another program or server, several at the same time, and learns what became of
/// each. It may have threads of its own, but all functions are for one thread. It tries each message once:
/// the Dispatcher that drives it repeats, waits and decides. It never sees the database.
class Carrier {
 public:
  virtual ~Carrier() = default;

  /// Where it carries messages to, at least one: host and port, or the program; never credentials.
  virtual std::vector<std::string> endpoints() const = 0;
  /// Returns at once. Every message gets one answer, within the configured time-out.
  virtual void submit(Message message) = 0;
  /// For poll(2): readable when take() would return something.
  virtual int fd() const = 0;
  /// The answers since the last call, in any order.
  virtual std::vector<Answer> take() = 0;
  /// Unless fewer than `unanswered` messages have no answer, nobody needs to know at once that one was
  /// accepted: fd() may stay unreadable until then, which spares a thread that wakes for each.
  virtual void call_below(std::size_t /*unanswered*/) {}
  /// The number of messages whose answer take() has not returned.
  virtual std::size_t unfinished() const = 0;
  /// Answers every message at once: unknown if it was sent, otherwise unavailable.
  virtual void cancel() = 0;
  /// True if its own threads ask for the clearance of a message, when a session with the receiver has begun.
  /// For others the dispatcher asks, as soon as has_session().
  virtual bool asks_for_clearance() const { return false; }
  /// False if it is not connected: then it gives back what is not cleared, as unavailable or untried.
  virtual bool has_session() const { return true; }
  /// How many messages beyond those in flight it keeps, so that the next one is at hand when one is done.
  virtual int ahead() const { return 0; }
  /// Keeps at most `most` connections to an endpoint from now on, and returns untried what it has not begun.
  virtual void limit_connections(std::size_t /*endpoint*/, int /*most*/) {}
};

}  // namespace mailroom::delivery
