// Checks options and addresses, and repeats an attempt once on a fresh connection.

#include "carriers/smtp/relay.hpp"

#include <fmt/format.h>
#include <fstream>
#include <utility>

#include "base/error.hpp"
#include "carriers/smtp/envelope.hpp"
#include "carriers/smtp/hello_name.hpp"
#include "carriers/smtp/relay_handle.hpp"

namespace mailroom {
namespace {

/// What becomes of a mail that never reached the relay's connection.
Answer refused(const RelayUrl& url, Verdict verdict, std::string why) {
  return {.verdict = verdict,
          .sink = url.address(),
          .reply = std::move(why),
          .is_excused = verdict != Verdict::rejected};
}

}  // namespace

void check_relay(const RelayUrl& url, const RelayOptions& options) {
  if (!url.user.empty() && options.password.empty() && !options.tokens) {
    throw Error(ExitCode::configuration,
                fmt::format("the relay {} has a user, and there is no password", url.address()),
                "name the file that contains it in send.password_file, or remove the user from the URL");
  }
  if (!options.hello_name.empty()) check_hello_name(options.hello_name);
  if (!options.ca_file.empty() && !std::ifstream(options.ca_file).good()) {
    throw Error(ExitCode::configuration, fmt::format("cannot read the CA file {}", options.ca_file),
                "it is set by send.ca_file, and this user must be able to read it");
  }
}

Relay::Relay(RelayUrl url, RelayOptions options) {
  check_relay(url, options);
  if (options.hello_name.empty()) options.hello_name = own_hello_name();
  handle_ = std::make_unique<RelayHandle>(std::move(url), std::move(options));
}

Relay::~Relay() = default;

Answer Relay::deliver(const Message& mail) {
  const auto& envelope = mail.envelope;
  if (!envelope.from.empty() && !is_envelope_address(envelope.from, envelope.needs_smtputf8)) {
    return refused(url(), Verdict::unavailable, "the sender's address cannot be written into a command");
  }
  if (!is_envelope_address(envelope.to, envelope.needs_smtputf8)) {
    return refused(url(), Verdict::rejected, "the address cannot be written into a command");
  }
  if (!is_transmittable(mail.body)) {
    return refused(url(), Verdict::rejected, "the message has a NUL, or a line end other than CRLF");
  }
  if (handle_->sockets.interrupted()) {
    return refused(url(), Verdict::deferred, "stopped before the mail was sent");
  }
  bool again = false;
  auto delivery = handle_->attempt(mail, false, again);
  if (again) delivery = handle_->attempt(mail, true, again);
  const auto is_turned_away = [&] {
    return delivery.verdict == Verdict::unavailable && delivery.code == 421 && !delivery.before_message;
  };
  while (is_turned_away() && handle_->open_elsewhere())
    delivery = handle_->attempt(mail, false, again);
  return delivery;
}

RelayCheck Relay::check(const Envelope* sample) {
  return handle_->check(sample);
}

void Relay::rest() {
  handle_->rest();
}

const RelayUrl& Relay::url() const {
  return handle_->url;
}

void Relay::interrupt() {
  handle_->sockets.interrupt();
}

void Relay::resume() {
  handle_->sockets.resume();
}

}  // namespace mailroom
