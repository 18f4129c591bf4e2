#pragma once

#include "crypto/key_ring.hpp"
#include "support/actions.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test {

/// A token that mailroom's own code has signed with `test_key`, and what it is for.
struct Fixture {
  std::int64_t account = 0;
  std::int64_t id = 0;  ///< of the token
  std::string code;
  std::string token;
};

inline crypto::Secret secret_of(const std::string& hex) {
  return crypto::Key::from_hex(hex, "the test").bytes();
}

inline std::string signed_token(const queue::Action* action, const std::string& hex, const std::string& code,
                                const std::string& key = test_key) {
  crypto::Hmac hmac(crypto::Key::from_hex(key, "the test"));
  const auto text = queue::sign_token(hmac, *action, secret_of(hex), code);
  return {text.begin(), text.end()};
}

/// The newest token, signed by mailroom's own code.
inline Fixture newest_token(db::Connection& owner) {
  const auto row = owner.run(
      "SELECT account, id, action = 'activation', encode(secret, 'hex'), code FROM tokens ORDER BY id DESC "
      "LIMIT 1")[0];
  const auto action = row[2].as<bool>() ? activation_action() : recovery_action();
  return {.account = row[0].as<std::int64_t>(),
          .id = row[1].as<std::int64_t>(),
          .code = row[4].c_str(),
          .token = signed_token(action, row[3].c_str(), row[4].c_str())};
}

/// A new account with its activation token.
inline Fixture sign_up(db::Connection& owner) {
  owner.run(
      "INSERT INTO accounts (email, login) SELECT n || '@x.example', n FROM "
      "(SELECT 'user' || count(*) AS n FROM accounts) s");
  return newest_token(owner);
}

/// A new active account with a recovery token.
inline Fixture ask_for_recovery(db::Connection& owner) {
  owner.run(
      "WITH a AS (INSERT INTO accounts (email, login, status) SELECT n || '@x.example', n, 'active' FROM "
      "(SELECT 'user' || count(*) AS n FROM accounts) s RETURNING id) "
      "INSERT INTO tokens (account, action) SELECT id, 'password_recovery' FROM a");
  return newest_token(owner);
}

}  // namespace mailroom::test
