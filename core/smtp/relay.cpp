#include "smtp/relay.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fstream>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "smtp/envelope.hpp"
#include "smtp/relay_handle.hpp"

namespace mailroom {
namespace {

bool is_hello_name(std::string_view name) {
  return name.size() <= 253 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 ||
                  std::string_view(".-_:[]").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

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
  if (!url.user.empty() && options.password.empty()) {
    throw Error(ExitCode::configuration,
                fmt::format("the relay {} has a user, and there is no password", url.address()),
                "name the file that contains it in send.password_file, or remove the user from the URL");
  }
  if (!is_hello_name(options.hello_name)) {
    throw Error(ExitCode::configuration,
                fmt::format("'{}' is no name for EHLO", shown_text(options.hello_name)),
                "it must be the name of this host");
  }
  if (!options.ca_file.empty() && !std::ifstream(options.ca_file).good()) {
    throw Error(ExitCode::configuration, fmt::format("cannot read the CA file {}", options.ca_file),
                "it is set by send.ca_file, and this user must be able to read it");
  }
}

Relay::Relay(RelayUrl url, RelayOptions options) {
  check_relay(url, options);
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
  return delivery;
}

RelayCheck Relay::check() {
  return handle_->check();
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
