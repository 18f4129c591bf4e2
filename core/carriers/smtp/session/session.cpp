// Refuses a mail that could be read as commands, and decides whether a second attempt is worth it.

#include "carriers/smtp/session/session.hpp"

#include <utility>

#include "carriers/smtp/relay/configured_relays.hpp"
#include "carriers/smtp/session/attempts.hpp"
#include "carriers/smtp/session/envelope.hpp"

namespace mailroom::smtp {
namespace {

/// What becomes of a mail that never reached the relay's connection.
delivery::Answer refused(const RelayUrl& url, delivery::Verdict verdict, std::string why) {
  return {.verdict = verdict,
          .sink = url.name(),
          .reply = std::move(why),
          .is_excused = verdict != delivery::Verdict::rejected};
}

}  // namespace

RelaySession::RelaySession(RelayUrl url, RelayOptions options) {
  check_relay(url, options);
  if (options.hello_name.empty()) options.hello_name = own_hello_name();
  attempts_ = std::make_unique<RelayAttempts>(std::move(url), std::move(options));
}

RelaySession::~RelaySession() = default;

delivery::Answer RelaySession::deliver(const delivery::Message& mail) {
  return deliver_before(mail, nullptr);
}

delivery::Answer RelaySession::deliver_before(const delivery::Message& mail, const delivery::Message* next) {
  const auto& envelope = mail.envelope;
  if (!envelope.from.empty() && !is_envelope_address(envelope.from, envelope.needs_smtputf8)) {
    return refused(url(), mail.is_raw ? delivery::Verdict::rejected : delivery::Verdict::unavailable,
                   "the sender's address cannot be written into a command");
  }
  if (!is_envelope_address(envelope.to, envelope.needs_smtputf8)) {
    return refused(url(), delivery::Verdict::rejected, "the address cannot be written into a command");
  }
  if (!is_transmittable(mail.body)) {
    return refused(url(), delivery::Verdict::rejected,
                   "the message has a NUL, or a line end other than CRLF");
  }
  if (attempts_->sockets.interrupted()) {
    return refused(url(), delivery::Verdict::deferred, "stopped before the mail was sent");
  }
  bool again = false;
  auto delivery = attempts_->attempt(mail, false, again, next);
  if (again) delivery = attempts_->attempt(mail, true, again, next);
  // RFC 5321, section 5.1: the client should try the other addresses of a name.
  const auto is_turned_away = [&] {
    return delivery.verdict == delivery::Verdict::unavailable && delivery.code == 421 &&
           !delivery.before_message;
  };
  while (is_turned_away() && attempts_->open_elsewhere())
    delivery = attempts_->attempt(mail, false, again, next);
  return delivery;
}

void RelaySession::deliver(std::span<const delivery::Message> mails, const Settle& settle) {
  const auto alone = attempts_->attempt_group(mails, settle);
  bool is_unavailable = false;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const auto* const next = i + 1 < alone.size() ? &mails[alone[i + 1]] : nullptr;
    auto answer = is_unavailable ? delivery::Answer{.sink = url().name(), .was_tried = false}
                                 : deliver_before(mails[alone[i]], next);
    is_unavailable = is_unavailable || (answer.was_tried && answer.verdict == delivery::Verdict::unavailable);
    settle(alone[i], std::move(answer));
  }
  attempts_->forget_ahead();
}

std::size_t RelaySession::window() const {
  return attempts_->window();
}

std::chrono::nanoseconds RelaySession::patience() const {
  return attempts_->patience();
}

RelayCheck RelaySession::check(const delivery::Envelope* sample) {
  return attempts_->check(sample);
}

void RelaySession::rest() {
  attempts_->rest();
}

const RelayUrl& RelaySession::url() const {
  return attempts_->url;
}

void RelaySession::interrupt() {
  attempts_->sockets.interrupt();
}

void RelaySession::resume() {
  attempts_->sockets.resume();
}

}  // namespace mailroom::smtp
