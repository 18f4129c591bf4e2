// How a role's mails get into the database: the statement, what its errors mean to a client, and what a role
// must have to submit.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "db/binary_session.hpp"
#include "submission/reply.hpp"
#include "submission/submitted_mail.hpp"

namespace mailroom::submission {

/// Where and how long.
struct DatabaseAccess {
  db::DatabaseTarget target{};
  Milliseconds patience{20'000};  ///< with a mail whose bytes are here
};

/// A session of a role.
class SubmissionSession {
 public:
  /// A result of store().
  struct Stored {
    std::map<std::string, std::string, std::less<>> ids{};  ///< of messages, by the keys of the mails
  };
  /// Nothing is stored, and the same may be tried again.
  struct Away {
    std::string reason{};
    bool wants_new_session = false;
  };

  SubmissionSession(const DatabaseAccess& access, const std::string& role, const std::string& password);

  bool is_open() const { return session_.is_open(); }
  std::string problem() const { return session_.problem(); }
  /// What a session that did not open means to who logs in: libpq gives no SQLSTATE for that.
  std::optional<Reply> reply_to_failed_login() const;
  /// What a session that did not open means to whoever mails as the role without a login, if waiting is in
  /// vain: with the statement that fixes it. Asks the server with the means of the target.
  static std::optional<Reply> refusal_of_role(const DatabaseAccess& access, const std::string& role,
                                              const std::string& problem);
  /// Why the role may not submit here, or none: the server must have asked for its password if it has one,
  /// and it must be this role, no superuser, and one that may call the function.
  std::optional<Reply> problem_of_role(bool needs_password);
  /// Stores mails with different keys by one statement, which is one transaction. A Reply: it is refused for
  /// good, which may be about one of several.
  std::variant<Stored, Away, Reply> store(const std::vector<const SubmittedMail*>& mails);

 private:
  std::string role_;
  std::string schema_;
  db::BinarySession session_;
};

/// A statement gets the half, so that it can be repeated once.
constexpr Milliseconds patience_of_statement(Milliseconds patience) {
  return patience / 2;
}

/// True of an SQLSTATE that a later attempt can overcome: connection, resources, operator, serialization, a
/// standby; and of what is wrong with the schema or the statement, since it is not the mail's fault.
bool may_pass(std::string_view sqlstate);

}  // namespace mailroom::submission
