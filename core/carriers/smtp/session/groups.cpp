// Several mails in one round trip: their commands and messages are sent before the first reply (RFC 3030,
// section 4.2, with RFC 2920). It does not say why a mail was refused (refusal/), and leaves what is unclear
// to an attempt at that mail alone.
//
// A relay that read the chunk of a refused mail as commands would carry out what somebody has written into
// the mail. So each connection is asked first whether its relay eats such a chunk. And no reply here is
// unlike all others, as 354 is to DATA: one reply too many would make a mail look accepted. So a reply has to
// begin with the word that its command had in the first exchange: `2.1.0` for MAIL, `2.0.0` or `Reset` for
// RSET.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "base/clock.hpp"
#include "carriers/smtp/session/attempts.hpp"
#include "carriers/smtp/session/envelope.hpp"

namespace mailroom::smtp {
namespace {

constexpr std::size_t widest_window = 64;
/// Where each envelope goes ahead with the message before: a ninth of the round trips is lost then.
constexpr std::size_t window_ahead = 8;
constexpr std::chrono::milliseconds longest_quick{20};
/// A larger mail takes longer than a round trip by itself, and the reply to it waits for no other.
constexpr std::size_t largest_grouped = 65'536;
/// How long a relay gets no groups that lost one, or that reads chunks as commands.
constexpr std::chrono::hours groups_rest{1};

bool is_refusal(int code) {
  return code >= 400 && is_definite(code);
}

/// The enhanced status of a reply, or its first word.
std::string first_word(const delivery::ReplyReader& reply) {
  return reply.text().substr(0, reply.text().find(' '));
}

}  // namespace

/// What the replies to a mail of a group have shown.
struct RelayAttempts::Grouped {
  enum class Then {
    go_on,
    ended,  ///< the relay has said 421: it has taken neither this mail, if it has no answer, nor those that
            ///< follow
    lost,   ///< nothing is known of this mail, if it has no answer, nor of those that follow
  };

  Then then = Then::go_on;
  std::optional<delivery::Answer> answer{};  ///< none: it was not taken, and is to be tried alone
};

bool RelayAttempts::may_send_groups() const {
  return dialogue_.offers_chunks() && steady_now() >= no_groups_until_;
}

std::size_t RelayAttempts::window() const {
  const bool is_ready =
      has_worked_ && took_alone_.count() > 0 && steady_now() - last_used_ < options_.rest_time;
  if (!is_ready) return 1;
  if (may_send_groups()) return window_;
  // Where the relay itself takes the time, mails that wait for it only keep others from overtaking them.
  const bool is_slow = took_ahead_ > longest_quick && took_ahead_ > took_alone_ * 3 / 4;
  return !may_go_ahead() ? 1 : is_slow ? smallest_window : window_ahead;
}

bool RelayAttempts::may_be_grouped(const delivery::Message& mail) {
  dialogue_.begin(steady_now());
  return mail.body.size() <= largest_grouped && has_safe_addresses(mail.envelope) &&
         is_transmittable(mail.body) && is_fit_for(mail.envelope);
}

/// RFC 3030, section 2: a receiver discards the chunk that it refuses. True if this one does, before MAIL and
/// without a recipient, and if its replies tell commands apart; otherwise the connection has ended.
bool RelayAttempts::eats_chunks(const delivery::Envelope& sample) {
  constexpr std::string_view chunk = "BDAT 6 LAST\r\nXXXX\r\n";
  constexpr std::array<SmtpStep, 4> steps{SmtpStep::end, SmtpStep::mail, SmtpStep::end, SmtpStep::rset};
  const auto request = fmt::format("{}{}{}RSET\r\n", chunk, request_of(SmtpStep::mail, sample, false), chunk);
  dialogue_.begin(steady_now());
  const auto is_right = [&](SmtpStep step) {
    dialogue_.sent(form_of(step).verb, steady_now());
    dialogue_.hurry(short_limit, steady_now());
    if (!connection_.read_reply()) return false;
    const int code = dialogue_.exchange().code;
    if (step == SmtpStep::end) return is_refusal(code) && code != 421;
    (step == SmtpStep::mail ? mail_word_ : rset_word_) = first_word(dialogue_.reply());
    return goes_on(step, code);
  };
  is_proven_ = connection_.send(request) && std::ranges::all_of(steps, is_right) &&
               !connection_.has_input() && mail_word_ != rset_word_;
  if (!is_proven_) {
    drop();
    if (!sockets.interrupted()) no_groups_until_ = steady_now() + groups_rest;
  }
  return is_proven_;
}

std::vector<std::size_t> RelayAttempts::attempt_group(std::span<const delivery::Message> mails,
                                                      const Settle& settle) {
  std::vector<std::size_t> alone;
  std::vector<std::size_t> group;
  // To ask costs a round trip, which one mail does not win back.
  const bool may_ask = mails.size() > 1;
  const bool is_ready = !sockets.interrupted() && may_send_groups() && window() > 1 &&
                        (is_proven_ || may_ask) && is_usable() &&
                        (is_proven_ || eats_chunks(mails.front().envelope));
  for (std::size_t i = 0; i < mails.size(); ++i)
    (is_ready && may_be_grouped(mails[i]) ? group : alone).push_back(i);
  for (const auto i : group) {
    if (mails[i].clearance != nullptr) mails[i].clearance->ask();
  }
  std::erase_if(group, [&](std::size_t i) {
    if (mails[i].awaits_clearance()) return false;
    settle(i, {.sink = url.name(), .was_tried = false});
    return true;
  });
  if (group.empty()) return alone;

  const auto began = steady_now();
  std::size_t sent = 0;
  while (sent < group.size() && send_grouped(mails[group[sent]], sent == 0))
    ++sent;
  std::size_t read = 0;
  auto then = Grouped::Then::go_on;
  bool is_unavailable = false;
  while (read < sent && then == Grouped::Then::go_on) {
    const auto i = group[read];
    auto replies = read_replies(mails[i], read++ == 0);
    then = replies.then;
    if (!replies.answer) {
      alone.push_back(i);
      continue;
    }
    is_unavailable = is_unavailable || replies.answer->verdict == delivery::Verdict::unavailable;
    settle(i, *std::move(replies.answer));
  }
  dialogue_.begin(steady_now());
  // RFC 5321, section 6.1: the relay may have taken what was sent whole.
  for (; then == Grouped::Then::lost && read < sent; ++read)
    settle(group[read], answer_to_lost(mails[group[read]]));
  // What was not sent whole has no end that the relay could have seen.
  alone.insert(alone.end(), group.begin() + static_cast<std::ptrdiff_t>(read), group.end());
  if (is_unavailable && then == Grouped::Then::go_on) close();
  if (then != Grouped::Then::go_on || sent < group.size()) drop();
  if (then == Grouped::Then::lost && !sockets.interrupted()) no_groups_until_ = steady_now() + groups_rest;
  widen(group.size(), steady_now() - began);
  return alone;
}

/// As long as a group takes at most twice as long as one mail, the round trips take the time, and not the
/// relay.
void RelayAttempts::widen(std::size_t count, std::chrono::nanoseconds took) {
  last_used_ = steady_now();
  if (took > 2 * took_alone_) {
    window_ = window_ / 2;
  } else if (count >= window_) {
    window_ = std::min(2 * window_, widest_window);
  }
}

/// Of a mail that was sent whole, and whose reply is missing.
delivery::Answer RelayAttempts::answer_to_lost(const delivery::Message& mail) {
  dialogue_.message_ended(steady_now());
  bool again = false;
  return answer_to(mail, finished_exchange(), again);
}

/// RSET comes before each mail but the first: the relay may have refused the one before.
bool RelayAttempts::send_grouped(const delivery::Message& mail, bool is_first) {
  auto bytes = std::string(is_first ? "" : "RSET\r\n");
  for (const auto step : {SmtpStep::mail, SmtpStep::rcpt})
    bytes += request_of(step, mail.envelope, takes_envid());
  dialogue_.begin(steady_now());
  return connection_.send(bytes += bytes_of(mail, as_chunk));
}

/// True if the reply that was read can be that to `step`.
bool RelayAttempts::is_of_step(SmtpStep step) {
  const int code = dialogue_.exchange().code;
  const auto word = first_word(dialogue_.reply());
  if (step == SmtpStep::rset) return goes_on(step, code) && word == rset_word_;
  if (!is_definite(code)) return false;
  if (is_refusal(code)) return true;
  if (step == SmtpStep::mail) return word == mail_word_;
  // Two replies to RCPT would be those to RCPT and to the end of the message.
  return step == SmtpStep::end ? word != rcpt_word_ : !(rcpt_word_ = word).empty();
}

RelayAttempts::Grouped RelayAttempts::read_replies(const delivery::Message& mail, bool is_first) {
  using enum Grouped::Then;
  dialogue_.begin(steady_now());
  Grouped replies;
  constexpr std::array<SmtpStep, 4> steps{SmtpStep::rset, SmtpStep::mail, SmtpStep::rcpt, SmtpStep::end};
  bool was_refused = false;
  for (const auto step : steps) {
    if (step == SmtpStep::rset && is_first) continue;
    dialogue_.sent(form_of(step).verb, steady_now());
    const bool is_read = connection_.read_reply();
    const int code = dialogue_.exchange().code;
    if (is_read && code == 421) return {.then = ended, .answer = std::move(replies.answer)};
    // RFC 2920, section 3.1: after a refusal the commands that depend on it are refused too.
    if (!is_read || !is_of_step(step) || (was_refused && !is_refusal(code))) {
      // With a reply that cannot be its own the refusal before it may be another's too.
      if (is_read || !replies.answer) replies.answer = answer_to_lost(mail);
      return {.then = lost, .answer = std::move(replies.answer)};
    }
    if (step == SmtpStep::rset) was_refused_ = false;
    if (was_refused || (step != SmtpStep::end && goes_on(step, code))) continue;
    was_refused = is_refusal(code);
    was_refused_ = was_refused_ || was_refused;
    // A second attempt tells a refusal of the sender from a late reply to the mail before.
    bool again = false;
    if (step != SmtpStep::mail) replies.answer = answer_to(mail, finished_exchange(), again);
  }
  return replies;
}

}  // namespace mailroom::smtp
