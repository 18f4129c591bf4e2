// Recognises commands by their verbs, notes what EHLO offers, and sets the time limit of each step. It does
// not decide what becomes of a mail (refusal/judgement).

#include "carriers/smtp/dialogue/dialogue.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <utility>

namespace mailroom::smtp {
namespace {

/// `keyword` is in upper case.
bool is_same_keyword(std::string_view offered, std::string_view keyword) {
  return std::equal(offered.begin(), offered.end(), keyword.begin(), keyword.end(),
                    [](unsigned char a, char b) { return std::toupper(a) == b; });
}

}  // namespace

void Dialogue::begin(TimePoint now) {
  exchange_ = {};
  exchange_.reused = mails_ > 0;
  reply_.clear();
  overdue_at_ = now + limits_.timeout;
}

void Dialogue::connecting(TimePoint now, bool over_tls) {
  mails_ = 0;
  is_plain_ = !over_tls;
  replaces_refusal_ = false;
  authenticated_ = false;
  forget_offers();
  exchange_.reused = false;
  overdue_at_ = now + limits_.timeout;
}

void Dialogue::step_to(SmtpStep step, TimePoint now) {
  exchange_.step = step;
  exchange_.code = 0;
  reply_.clear();
  overdue_at_ = now + limit();
}

void Dialogue::sent(std::string_view bytes, TimePoint now) {
  const auto verb = bytes.substr(0, bytes.find_first_of(" \r\n"));
  // RFC 4954, section 4: the answer to a challenge, which is 334, is base64, which may look like a verb.
  const bool answers_challenge = exchange_.step == SmtpStep::auth && exchange_.code == 334;
  const auto step = answers_challenge ? SmtpStep::auth : step_of(verb);
  if (!step) return;
  // RFC 5321, section 3.2: HELO after a refusal of EHLO. The refusal stands until there is a reply.
  const bool is_helo = *step == SmtpStep::hello && exchange_.step == SmtpStep::hello && exchange_.code >= 400;
  if (is_helo) {
    replaces_refusal_ = true;
    overdue_at_ = now + limit();
    return;
  }
  // RFC 3207, section 4.2: what was offered before TLS does not count.
  if (*step == SmtpStep::hello) forget_offers();
  if (*step == SmtpStep::mail) ++mails_;
  step_to(*step, now);
}

void Dialogue::forget_offers() {
  offers_smtputf8_ = offers_8bitmime_ = offers_pipelining_ = offers_chunking_ = offers_dsn_ = false;
  auth_offer_.reset();
}

void Dialogue::note_offer(std::string_view offer) {
  while (!offer.empty() && (offer.back() == '\r' || offer.back() == '\n'))
    offer.remove_suffix(1);
  // Old servers write AUTH=PLAIN, perhaps beside AUTH PLAIN.
  const auto keyword = offer.substr(0, offer.find_first_of(" ="));
  if (is_same_keyword(keyword, "AUTH")) {
    const auto mechanisms = offer.substr(std::min(keyword.size() + 1, offer.size()));
    auth_offer_ = auth_offer_ ? fmt::format("{} {}", *auth_offer_, mechanisms) : std::string(mechanisms);
  }
  if (is_same_keyword(keyword, "8BITMIME")) offers_8bitmime_ = true;
  if (is_same_keyword(keyword, "SMTPUTF8")) offers_smtputf8_ = true;
  if (is_same_keyword(keyword, "PIPELINING")) offers_pipelining_ = true;
  if (is_same_keyword(keyword, "CHUNKING")) offers_chunking_ = true;
  if (is_same_keyword(keyword, "DSN")) offers_dsn_ = true;
}

void Dialogue::received(std::string_view line) {
  if (std::exchange(replaces_refusal_, false)) step_to(exchange_.step, overdue_at_ - limit());
  // Lines after a complete reply to the same step belong to no command.
  if (exchange_.code != 0) return;
  if (exchange_.step == SmtpStep::hello && line.size() > 4) note_offer(line.substr(4));
  if (!reply_.add(line)) {
    if (exchange_.step == SmtpStep::connect && !delivery::has_reply_code(line))
      exchange_.stop = SmtpStop::no_smtp;
    return;
  }
  exchange_.code = reply_.code();
  if (exchange_.step == SmtpStep::connect) greeting_ = reply_.text();
  // RFC 3207, section 4: from 220 on both speak TLS.
  if (exchange_.step == SmtpStep::starttls && exchange_.code == 220) is_plain_ = false;
  if (exchange_.step == SmtpStep::auth && exchange_.code / 100 == 2) authenticated_ = true;
}

SmtpStop Dialogue::obstacle_to(const Needs& needs) const {
  if (limits_.wants_auth && !authenticated_) return SmtpStop::no_auth;
  if (needs.smtputf8 && !offers_smtputf8_)
    return needs.for_sender ? SmtpStop::no_sender_smtputf8 : SmtpStop::no_smtputf8;
  return needs.bits_8 && !offers_8bitmime_ ? SmtpStop::no_8bitmime : SmtpStop::none;
}

bool Dialogue::is_fit_for(const Needs& needs) {
  if (const auto obstacle = obstacle_to(needs); obstacle != SmtpStop::none) exchange_.stop = obstacle;
  return exchange_.stop == SmtpStop::none;
}

void Dialogue::hurry(Milliseconds limit, TimePoint now) {
  overdue_at_ = std::min(overdue_at_, now + limit);
}

bool Dialogue::is_overdue(TimePoint now) {
  if (now < overdue_at_) return false;
  if (exchange_.stop == SmtpStop::none) exchange_.stop = SmtpStop::timed_out;
  return true;
}

Milliseconds Dialogue::limit() const {
  return form_of(exchange_.step).limit == StepLimit::end_timeout ? limits_.at_end : limits_.timeout;
}

}  // namespace mailroom::smtp
