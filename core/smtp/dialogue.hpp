#pragma once

#include <cstddef>
#include <string_view>

#include "base/clock.hpp"
#include "smtp/exchange.hpp"
#include "smtp/reply_text.hpp"

namespace mailroom {

/// Follows the dialogue with a relay from the commands, lines and bytes that libcurl reports: how far the
/// attempt is, the reply to the last command, what the connection offers, and when the next reply is overdue.
///
/// libcurl's own response code is not used, since it is that of an earlier command when a reply is missing.
class Dialogue {
 public:
  struct Limits {
    Milliseconds timeout;  ///< for the connection, and for the reply to each command
    Milliseconds at_end;   ///< for the reply to the end of the message
    bool wants_auth = false;
  };

  explicit Dialogue(const Limits& limits) : limits_(limits) {}

  /// Begins an attempt at a mail.
  void begin(std::string_view message, bool needs_smtputf8, TimePoint now);
  /// A socket is being opened.
  void connecting(TimePoint now);
  /// Sent bytes: a command, or a part of AUTH, of which nothing is kept.
  void sent(std::string_view bytes, TimePoint now);
  /// Takes a line of a reply. False if the attempt must be given up.
  bool received(std::string_view line);
  /// Copies the next part of the message; 0 at its end.
  std::size_t read(char* to, std::size_t room, TimePoint now);
  /// True if a reply is overdue; from then on exchange() says so. A reply to QUIT is not waited for long.
  bool is_overdue(TimePoint now);

  const SmtpExchange& exchange() const { return exchange_; }
  const ReplyReader& reply() const { return reply_; }
  /// The limit that holds in the current step.
  Milliseconds limit() const;

 private:
  void step_to(SmtpStep step, TimePoint now);
  bool is_usable();

  Limits limits_;
  SmtpExchange exchange_;
  ReplyReader reply_;
  std::string_view rest_;  ///< of the message
  bool needs_smtputf8_ = false;
  bool quitting_ = false;
  TimePoint overdue_at_;

  // The connection.
  int mails_ = 0;
  bool authenticated_ = false;
  bool offers_smtputf8_ = false;
};

}  // namespace mailroom
