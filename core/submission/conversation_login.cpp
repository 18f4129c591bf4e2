// AUTH PLAIN (RFC 4616) and LOGIN, over TLS only.

#include <array>
#include <openssl/crypto.h>

#include "base/text.hpp"
#include "crypto/base64.hpp"
#include "submission/conversation.hpp"

namespace mailroom::submission {
namespace {

std::optional<std::string> decoded_text(std::string_view text) {
  const auto bytes = crypto::decoded_base64(text);
  if (!bytes) return std::nullopt;
  return std::string(bytes->begin(), bytes->end());
}

}  // namespace

Conversation::Wish Conversation::auth(std::string_view rest) {
  const auto answer = [&](const Reply& reply) {
    say(reply);
    return wish_now();
  };
  if (!client_.needs_login) return answer(replies::no_login);
  if (!is_extended_) return answer(replies::hello_first);
  if (!client_.role.empty() || has_mail_) return answer(replies::not_now);
  if (!may_log_in()) return answer(replies::plain_login);
  if (++logins_ > terms_.logins) return answer(replies::too_many_logins);
  rest = trimmed(rest);
  const auto mechanism = lower_case(rest.substr(0, rest.find(' ')));
  const auto initial = trimmed(rest.substr(mechanism.size()));
  if (mechanism == "plain") {
    if (!initial.empty()) return plain_login(initial);
    state_ = State::login_plain;
    return answer({334, "", ""});
  }
  if (mechanism != "login") return answer(replies::no_mechanism);
  if (initial.empty()) {
    state_ = State::login_user;
    return answer({334, "", "VXNlcm5hbWU6"});
  }
  const auto name = decoded_text(initial);
  if (!name) return answer(replies::login_given_up);
  login_name_ = *name;
  state_ = State::login_password;
  return answer({334, "", "UGFzc3dvcmQ6"});
}

Conversation::Wish Conversation::plain_login(std::string_view text) {
  // authorization identity, NUL, user, NUL, password
  auto decoded = decoded_text(text);
  const auto first = decoded ? decoded->find('\0') : std::string::npos;
  const auto second = first == std::string::npos ? first : decoded->find('\0', first + 1);
  if (second == std::string::npos || decoded->find('\0', second + 1) != std::string::npos) {
    say(replies::login_given_up);
    return wish_now();
  }
  const auto as = decoded->substr(0, first);
  login_ = {decoded->substr(first + 1, second - first - 1), decoded->substr(second + 1)};
  OPENSSL_cleanse(decoded->data(), decoded->size());
  // Nobody mails as another role.
  if (login_.role.empty() || login_.password.empty() || (!as.empty() && as != login_.role)) {
    login_ = {};
    say(replies::wrong_password);
    return wish_now();
  }
  state_ = State::waiting;
  return Wish::log_in;
}

Conversation::Wish Conversation::take_login_line(std::string_view line) {
  const auto state = std::exchange(state_, State::command);
  if (state == State::login_plain && line != "*") return plain_login(line);
  auto text = line == "*" ? std::nullopt : decoded_text(line);
  if (!text) {
    say(replies::login_given_up);
  } else if (state == State::login_user) {
    login_name_ = *text;
    state_ = State::login_password;
    say({334, "", "UGFzc3dvcmQ6"});
  } else if (login_name_.empty() || text->empty()) {
    say(replies::wrong_password);
  } else {
    login_ = {login_name_, *text};
    OPENSSL_cleanse(text->data(), text->size());
    state_ = State::waiting;
    return Wish::log_in;
  }
  return wish_now();
}

}  // namespace mailroom::submission
