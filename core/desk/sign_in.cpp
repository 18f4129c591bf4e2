// Two sessions: libpq says of the first whether a password was asked for, and the second is kept. That keeps
// no password either.

#include "desk/sign_in.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "db/binary_session.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/schema_objects.hpp"

namespace mailroom::desk {
namespace {

constexpr std::chrono::seconds patience{10};  ///< with the server, to connect and with each statement
constexpr const char* program = "mailroom desk";
constexpr const char* wrong_login = "The role or its password is wrong.";

/// `target` as a role, whose password alone counts.
db::DatabaseTarget target_of(const db::DatabaseTarget& target, const std::string& role,
                             const std::string& password) {
  auto own = target;
  own.password_file.clear();
  own.conninfo = db::with_option(own.conninfo, {"user", role});
  own.conninfo = db::with_option(own.conninfo, {"password", password});
  own.conninfo = db::with_option(own.conninfo, {"passfile", "/dev/null"});
  return own;
}

bool is_wrong_password(const std::string& problem) {
  return problem.find(" 28P01: ") != std::string::npos || problem.find(" 28000: ") != std::string::npos;
}

/// Whether the server asks for the password; empty if it does, and takes it.
SignIn try_password(const db::DatabaseTarget& target, const std::string& role, const std::string& password) {
  const db::BinarySession asked(target, role, password, program, patience);
  if (!asked.is_open()) {
    if (is_wrong_password(asked.problem())) return {.problem = wrong_login, .was_guess = true};
    return {.problem = "The database does not answer. Try again in a moment."};
  }
  if (!asked.used_password())
    return {
        .problem =
            "PostgreSQL lets this role in without a password, so nobody is known by it: pg_hba.conf has to "
            "ask for one (scram-sha-256)."};
  return {};
}

}  // namespace

SignIn sign_in(const db::DatabaseTarget& target, const std::string& role, const std::string& password) {
  if (role.empty() || password.empty()) return {.problem = "A role and its password are needed."};
  // libpq ends a text there, and would try what is before it.
  if ((role + password).find('\0') != std::string::npos) return {.problem = wrong_login, .was_guess = true};
  auto result = try_password(target, role, password);
  if (!result.problem.empty()) return result;
  try {
    auto session = std::make_shared<DeskSession>();
    session->role = role;
    session->csrf = new_desk_secret();
    session->connection =
        std::make_unique<db::Connection>(target_of(target, role, password), program,
                                         db::SessionLimits{.answer = patience, .statement = patience});
    session->connection->forget_login();
    auto& connection = *session->connection;
    const bool is_super =
        connection
            .run("SELECT rolsuper OR session_user <> current_user FROM pg_roles WHERE rolname = session_user")
            .value<bool>();
    if (is_super) return {.problem = "A superuser, or a role that acts as another, cannot sign in here."};
    session->rights = read_desk_rights(connection);
    if (!session->rights.reads)
      return {.problem = fmt::format(
                  "The role {} may not read mails: it needs the rights of mailroom_reader.", role)};
    schema::require_current_schema(connection);
    schema::require_all_rows(connection);
    return {.session = std::move(session)};
  } catch (const db::ConnectionLost&) {
    return {.problem = "The database does not answer. Try again in a moment."};
  } catch (const Error& error) {
    return {.problem =
                error.hint().empty() ? error.what() : fmt::format("{}: {}", error.what(), error.hint())};
  }
}

bool DeskGuesses::are_too_many(const std::string& client, TimePoint now) const {
  const auto found = guesses_.find(client);
  return found != guesses_.end() && now - found->second.since <= std::chrono::minutes(1) &&
         found->second.count >= most_in_a_minute;
}

Milliseconds DeskGuesses::add(const std::string& client, TimePoint now) {
  constexpr std::size_t most_clients = 10'000;
  if (guesses_.size() > most_clients) guesses_.clear();
  auto& guesses = guesses_[client];
  if (now - guesses.since > std::chrono::minutes(1)) guesses = {.count = 0, .since = now};
  ++guesses.count;
  return Milliseconds(1000 << std::min(guesses.count - 1, 2));
}

}  // namespace mailroom::desk
