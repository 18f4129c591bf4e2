// Tries one mechanism after the other, and a new access token where a kept one is refused.

#include "carriers/smtp/login/login.hpp"

#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "delivery/reply_text.hpp"

namespace mailroom::smtp {

SmtpLogin::SmtpLogin(const RelayUrl& url, const RelayOptions& options, Dialogue& dialogue,
                     RelayConnection& connection)
    : url_(url),
      options_(options),
      dialogue_(dialogue),
      connection_(connection),
      secrets_(delivery::secrets_of_login(url.user, options.password)) {}

bool SmtpLogin::is_shut_out() const {
  const auto& exchange = dialogue_.exchange();
  const bool is_closing = exchange.step == SmtpStep::auth && exchange.code == 421;
  return is_closing || (!url_.user.empty() && !dialogue_.auth_offer());
}

void SmtpLogin::log_in() {
  const auto& offer = dialogue_.auth_offer();
  if (url_.user.empty() || !offer) return;
  const bool with_token = options_.tokens != nullptr;
  if (mechanisms_to_try(*offer, with_token).empty()) {
    problem_ = no_mechanism_text(*offer, with_token);
    return dialogue_.give_up_login();
  }
  Credentials credentials{.user = url_.user,
                          .secret = options_.password,
                          .is_token = with_token,
                          .host = url_.host,
                          .port = url_.port};
  // A kept token may have ended before anybody knew.
  for (bool again = true; again;) {
    try {
      if (with_token) credentials.secret = options_.tokens->token(steady_now());
    } catch (const Error& error) {
      problem_ = error.what();
      return dialogue_.give_up_login();
    }
    secrets_ = delivery::secrets_of_login(url_.user, credentials.secret);
    again = !try_mechanisms(credentials) && dialogue_.exchange().code / 100 == 5 && with_token &&
            options_.tokens->was_kept(credentials.secret);
  }
}

/// Goes on to the next mechanism where the relay refuses one.
bool SmtpLogin::try_mechanisms(const Credentials& credentials) {
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

bool SmtpLogin::authenticate(AuthMechanism mechanism, const Credentials& credentials) {
  if (!connection_.command(auth_command(mechanism, credentials))) return false;
  for (int round = 0; dialogue_.exchange().code == 334; ++round) {
    const auto answer = auth_answer(mechanism, round, dialogue_.reply().last_line(), credentials);
    // RFC 4954, section 4: this cancels, and the relay refuses.
    if (!connection_.command(answer.value_or("*")) || !answer) break;
  }
  return dialogue_.is_authenticated();
}

}  // namespace mailroom::smtp
