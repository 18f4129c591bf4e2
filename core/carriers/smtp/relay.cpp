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

/// A delivery that never reached the relay's connection.
Delivery refused(const RelayUrl& url, MailOutcome outcome, std::string why) {
  return {.outcome = outcome,
          .counts = outcome == MailOutcome::rejected,
          .code = 0,
          .reply = std::move(why),
          .relay = url.address(),
          .retry_after = std::nullopt,
          .throttled = false};
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

Delivery Relay::deliver(const Mail& mail) {
  if (!mail.from.empty() && !is_envelope_address(mail.from, mail.needs_smtputf8)) {
    return refused(url(), MailOutcome::unavailable, "the sender's address cannot be written into a command");
  }
  if (!is_envelope_address(mail.to, mail.needs_smtputf8)) {
    return refused(url(), MailOutcome::rejected, "the address cannot be written into a command");
  }
  if (!is_transmittable(mail.message)) {
    return refused(url(), MailOutcome::rejected, "the message has a NUL, or a line end other than CRLF");
  }
  if (handle_->sockets.interrupted()) {
    return refused(url(), MailOutcome::deferred, "stopped before the mail was sent");
  }
  bool again = false;
  auto delivery = handle_->attempt(mail, false, again);
  if (again) delivery = handle_->attempt(mail, true, again);
  const auto is_turned_away = [&] {
    return delivery.outcome == MailOutcome::unavailable && delivery.code == 421 && !delivery.before_mail;
  };
  while (is_turned_away() && handle_->open_elsewhere())
    delivery = handle_->attempt(mail, false, again);
  return delivery;
}

RelayCheck Relay::check(const Mail* sample) {
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
