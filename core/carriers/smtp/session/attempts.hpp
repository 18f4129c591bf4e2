// One attempt at a mail over the connection to a relay, and what is known after it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "bounce/provider.hpp"
#include "carriers/smtp/dialogue/connection.hpp"
#include "carriers/smtp/dialogue/dialogue.hpp"
#include "carriers/smtp/dialogue/sockets.hpp"
#include "carriers/smtp/login/login.hpp"
#include "carriers/smtp/refusal/relay_fault.hpp"
#include "carriers/smtp/refusal/relay_wish.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "carriers/smtp/session/session.hpp"
#include "delivery/answer.hpp"
#include "delivery/carrier.hpp"

namespace mailroom::smtp {

/// Attempts at mails over one connection, which is kept between them. Users of a session include neither this
/// header nor those of libcurl.
class RelayAttempts {
 public:
  RelayAttempts(RelayUrl url, RelayOptions options);

  /// One attempt. `next`, which may be null, is the mail of the following attempt, unless this one is
  /// repeated: where the relay allows it, its envelope is sent with this message.
  delivery::Answer attempt(const delivery::Message& message, bool on_fresh_connection, bool& again,
                           const delivery::Message* next = nullptr);
  /// No attempt follows at the mail whose envelope was sent.
  void forget_ahead();

  /// How many mails that are attempted together share round trips; 1: none do.
  std::size_t window() const;
  /// A small part of what a mail takes that is sent alone.
  std::chrono::nanoseconds patience() const { return took_alone_ / 20; }
  /// One attempt at each of several mails, which are sent before the first of them is answered, if the relay
  /// takes chunks. Calls `settle` with the place and the answer of each as it comes. Returns the places of
  /// those that the relay has not taken, and that are to be tried one at a time.
  std::vector<std::size_t> attempt_group(std::span<const delivery::Message> mails, const Settle& settle);

  /// Connects to another address of the relay, as the last one has turned a mail away before it knew anything
  /// of it. True if the next attempt() goes there.
  bool open_elsewhere();

  /// Ends the connection.
  void rest() { close(); }

  /// As an attempt on a fresh connection, up to the sender of `sample`; without one NOOP in place of a mail.
  RelayCheck check(const delivery::Envelope* sample);

  const RelayUrl url;
  RelaySockets sockets;

 private:
  CURLcode open();
  bool is_fit_for(const delivery::Envelope& mail);
  std::string bytes_of(const delivery::Message& mail, std::string (*framed)(std::string_view)) const;
  delivery::Answer answer_to(const delivery::Message& message, SmtpExchange exchange, bool& again);
  bool transact(const delivery::Message& mail, const delivery::Message* next);
  bool send_envelope(const delivery::Envelope& mail);
  bool takes_envid() const { return dialogue_.offers_dsn() && !refuses_envid_; }
  /// True if the open connection can carry a mail.
  bool is_usable();
  bool reset();
  bool is_reset();
  void close();
  void drop();
  /// Prepares the connection for the next mail, after the replies of this one.
  void clear_up(const SmtpExchange& exchange, delivery::Verdict outcome);
  void say_sender(const delivery::Envelope& sample);
  bool read_other_replies(SmtpStep refused);
  SmtpExchange finished_exchange() const;
  RelayFault fault_of(const SmtpExchange& exchange) const;
  bool is_silent(const SmtpExchange& exchange) const;
  std::string text_of(const SmtpExchange& exchange, delivery::Verdict outcome) const;
  RelayWish wish_of(const SmtpExchange& exchange, const std::string& text,
                    const delivery::Envelope& mail) const;

  /// For replies that decide nothing.
  static constexpr Milliseconds short_limit{3000};
  static constexpr std::string_view reset_command = "RSET\r\n";

  RelayOptions options_;
  const bounce::Provider* provider_;  ///< whose relay it is; null for none that is known
  Dialogue dialogue_;
  RelayConnection connection_;
  SmtpLogin login_;
  bool refuses_envid_ = false;  ///< it offers DSN and does not take its parameters
  bool was_refused_ = false;    ///< the last mail, so that the relay may still know of it
  bool is_rested_ = false;      ///< the connection was idle for some time before this attempt
  TimePoint last_used_{};
  CURLcode opened_ = CURLE_OK;  ///< what became of opening the connection in this attempt
  std::string utf8_sender_;     ///< of the last mail

  // Of an envelope that goes ahead.
  bool may_go_ahead() const;
  std::string ahead_of(const delivery::Message& next) const;
  bool is_answered();

  const delivery::Message* ahead_ = nullptr;  ///< its envelope was sent, and not answered
  std::chrono::nanoseconds took_ahead_{};     ///< the last mail that it was of, if it was accepted
  TimePoint none_ahead_until_{};

  // Of groups.
  struct Grouped;

  static constexpr std::size_t smallest_window = 2;

  bool may_send_groups() const;

  bool may_be_grouped(const delivery::Message& mail);
  bool eats_chunks(const delivery::Envelope& sample);
  bool send_grouped(const delivery::Message& mail, bool is_first);
  bool is_of_step(SmtpStep step);
  Grouped read_replies(const delivery::Message& mail, bool is_first);
  delivery::Answer answer_to_lost(const delivery::Message& mail);
  void widen(std::size_t count, std::chrono::nanoseconds took);

  bool has_worked_ = false;  ///< the connection has carried a mail alone
  bool is_proven_ = false;   ///< its relay eats the chunks that it refuses, and:
  std::string mail_word_;    ///< with which its replies to MAIL and to RSET begin
  std::string rset_word_;
  std::string rcpt_word_;  ///< with which the last reply to RCPT began
  std::size_t window_ = 4;
  std::chrono::nanoseconds took_alone_{};  ///< the last mail that was sent alone and accepted
  TimePoint no_groups_until_{};
};

}  // namespace mailroom::smtp
