// The state of an SMTP session, worked out from its bytes without any input or output.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "carriers/smtp/dialogue/exchange.hpp"
#include "delivery/reply_text.hpp"

namespace mailroom::smtp {

/// Follows the dialogue with a relay from its commands and lines: how far the attempt is, the reply to the
/// last command, what the connection offers, and when the next reply is overdue.
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
  void begin(TimePoint now);
  /// A socket is being opened; `over_tls`: TLS comes before the greeting.
  void connecting(TimePoint now, bool over_tls = false);
  /// The reply to `bytes` is awaited next: a command, or a part of AUTH, of which nothing is kept.
  void sent(std::string_view bytes, TimePoint now);
  /// The message is being sent.
  void message_began(TimePoint now) { step_to(SmtpStep::body, now); }
  /// The relay has taken some bytes, and more follow.
  void sending(TimePoint now) { overdue_at_ = now + limit(); }
  /// The message was sent with its end.
  void message_ended(TimePoint now) { step_to(SmtpStep::end, now); }
  /// Takes a line of a reply.
  void received(std::string_view line);
  /// What a mail needs beyond RFC 5321.
  struct Needs {
    bool smtputf8 = false;
    bool bits_8 = false;
    bool for_sender = false;  ///< as every mail of this sender does
  };
  /// What keeps the connection from carrying a mail with these needs.
  SmtpStop obstacle_to(const Needs& needs) const;
  /// False, and exchange() says so, if there is an obstacle.
  bool is_fit_for(const Needs& needs);
  /// No login can begin.
  void give_up_login() { exchange_.stop = SmtpStop::no_login; }
  /// The reply to the last command is overdue after `limit` already.
  void hurry(Milliseconds limit, TimePoint now);
  /// True if a reply is overdue; from then on exchange() says so.
  bool is_overdue(TimePoint now);

  const SmtpExchange& exchange() const { return exchange_; }
  const delivery::ReplyReader& reply() const { return reply_; }
  /// What the relay said first on this connection.
  const std::string& greeting() const { return greeting_; }
  /// True if several commands may be sent at once (RFC 2920).
  bool offers_pipelining() const { return offers_pipelining_; }
  /// True if messages may be sent in chunks, and with the commands of the next mail after them (RFC 3030,
  /// section 4.2).
  bool offers_chunks() const { return offers_chunking_ && offers_pipelining_; }
  bool offers_dsn() const { return offers_dsn_; }
  /// The mechanisms after AUTH; nullopt if AUTH is not offered.
  const std::optional<std::string>& auth_offer() const { return auth_offer_; }
  bool is_authenticated() const { return authenticated_; }
  /// True if the relay waits for a command over a connection without TLS.
  bool is_plain() const { return is_plain_ && exchange_.code >= 200 && exchange_.code != 421; }
  /// The limit that holds in the current step.
  Milliseconds limit() const;
  TimePoint overdue_at() const { return overdue_at_; }

 private:
  void step_to(SmtpStep step, TimePoint now);
  void note_offer(std::string_view offer);
  void forget_offers();

  Limits limits_;
  SmtpExchange exchange_;
  delivery::ReplyReader reply_;
  TimePoint overdue_at_;

  // The connection.
  int mails_ = 0;
  std::string greeting_;
  bool is_plain_ = false;
  bool replaces_refusal_ = false;  ///< the next reply does, which is one to HELO
  bool authenticated_ = false;
  bool offers_smtputf8_ = false;
  bool offers_8bitmime_ = false;
  bool offers_pipelining_ = false;
  bool offers_chunking_ = false;
  bool offers_dsn_ = false;
  std::optional<std::string> auth_offer_{};
};

}  // namespace mailroom::smtp
