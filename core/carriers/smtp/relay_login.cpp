// How the connection of a RelayHandle is opened and logged in.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "carriers/smtp/relay_handle.hpp"

namespace mailroom {

CURLcode RelayHandle::open() {
  auto opened = connection_.open();
  do {
    if (opened == CURLE_OK) log_in();
  } while (opened == CURLE_OK && lets_nobody_in() && connection_.open_next(opened));
  return opened;
}

bool RelayHandle::open_elsewhere() {
  if (!connection_.open_next(opened_)) return false;
  if (opened_ == CURLE_OK) log_in();
  return opened_ == CURLE_OK && !lets_nobody_in();
}

/// True if another address of the relay may be of more use than this one.
bool RelayHandle::lets_nobody_in() const {
  const auto& exchange = dialogue_.exchange();
  const bool is_closing = exchange.step == SmtpStep::auth && exchange.code == 421;
  return is_closing || (!url.user.empty() && !dialogue_.auth_offer());
}

/// Logs in where AUTH is offered. The exchange says why it fails; without an offer is_fit_for() does.
void RelayHandle::log_in() {
  const auto& offer = dialogue_.auth_offer();
  if (url.user.empty() || !offer) return;
  const bool with_token = options_.tokens != nullptr;
  if (mechanisms_to_try(*offer, with_token).empty()) {
    login_problem_ = no_mechanism_text(*offer, with_token);
    return dialogue_.give_up_login();
  }
  Credentials credentials{.user = url.user,
                          .secret = options_.password,
                          .is_token = with_token,
                          .host = url.host,
                          .port = url.port};
  // A kept token may have ended before anybody knew.
  for (bool again = true; again;) {
    try {
      if (with_token) credentials.secret = options_.tokens->token(steady_now());
    } catch (const Error& error) {
      login_problem_ = error.what();
      return dialogue_.give_up_login();
    }
    secrets_ = secrets_of_login(url.user, credentials.secret);
    again = !try_mechanisms(credentials) && dialogue_.exchange().code / 100 == 5 && with_token &&
            options_.tokens->was_kept(credentials.secret);
  }
}

/// Goes on to the next mechanism where the relay refuses one.
bool RelayHandle::try_mechanisms(const Credentials& credentials) {
  std::optional<Dialogue> refused;
  for (const auto mechanism : mechanisms_to_try(*dialogue_.auth_offer(), credentials.is_token)) {
    if (authenticate(mechanism, credentials)) return true;
    const bool is_refused = dialogue_.exchange().code >= 500;
    // A relay that has said why, and closes the connection then, has said enough.
    if (!is_refused && refused) dialogue_ = *refused;
    if (!is_refused) return false;
    refused = dialogue_;
  }
  return false;
}

bool RelayHandle::authenticate(AuthMechanism mechanism, const Credentials& credentials) {
  if (!command(auth_command(mechanism, credentials))) return false;
  for (int round = 0; dialogue_.exchange().code == 334; ++round) {
    const auto answer = auth_answer(mechanism, round, dialogue_.reply().last_line(), credentials);
    // RFC 4954, section 4: this cancels, and the relay refuses.
    if (!command(answer.value_or("*")) || !answer) break;
  }
  return dialogue_.is_authenticated();
}

/// Says `command`, or an answer to a challenge, and reads the reply.
bool RelayHandle::command(const std::string& command) {
  const auto line = command + "\r\n";
  dialogue_.sent(line, steady_now());
  return connection_.send(line) && connection_.read_reply();
}

}  // namespace mailroom
