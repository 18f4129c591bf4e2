// A session at the database that acts as the roles of keys, each in transactions of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "db/binary_session.hpp"
#include "http_door/role_rate.hpp"
#include "submission/submission_session.hpp"

namespace mailroom::http_door {

/// What a request has shown, and whose it is.
struct Credentials {
  std::string digest{};  ///< SHA-256 of the key, in hexadecimal digits
  std::string id{};      ///< how the key begins
  std::string role{};
  bool may_only_send = false;
  bool has_rate = false;  ///< its answers say how many mails the role may still ask for
};

/// The same may be tried again.
struct Away {
  std::string reason{};
  bool may_be_stored = false;  ///< the session ended before the answer came
};

class KeyedSession {
 public:
  explicit KeyedSession(const submission::DatabaseAccess& access);

  /// Rows of each statement, committed, as `role`, while all keys of `digests` are good. `wait`: for locks.
  /// `looks_at_rate`: rate() is that after the statements.
  std::variant<std::vector<db::TextRows>, db::StatementFailure, Away> run(
      const std::vector<std::string>& digests, const std::string& role,
      const std::vector<db::Statement>& statements, Milliseconds wait, bool looks_at_rate = false);
  /// Of the role of the last run() or find() that was asked for it.
  const std::optional<RoleRate>& rate() const { return rate_; }
  /// The role of a key, with its rate; none if it is not good.
  std::variant<std::optional<Credentials>, Away> find(const std::string& digest);
  /// `mailroom_send_each` in the schema.
  std::string qualified(std::string_view name) const;

 private:
  bool connect(Away& away);
  db::Statement limit_of(const std::string& role) const;

  submission::DatabaseAccess access_;
  std::optional<db::BinarySession> session_;
  std::optional<RoleRate> rate_;
};

/// The statement that run() puts before the others, and those after it: a failure names them.
constexpr std::size_t statements_before = 3;

}  // namespace mailroom::http_door
