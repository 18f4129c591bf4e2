// One statement a group. Each mail has a key, so that it may be run again when its answer was lost.

#include "submission/submission_session.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "db/errors.hpp"

namespace mailroom::submission {
namespace {

using Element = db::BinaryArray::Element;

constexpr const char* insufficient_privilege = "42501";
constexpr const char* unique_violation = "23505";
/// In binary form jsonb begins with its version.
constexpr const char* keep_return_path = "\x01{\"keep_return_path\": true}";

std::string quoted_name(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string qualified(const std::string& schema, const std::string& name) {
  return schema.empty() ? name : quoted_name(schema) + "." + name;
}

Reply refusal_of(const db::StatementFailure& failure, const std::string& role) {
  const auto hint = failure.sqlstate == insufficient_privilege && failure.hint.empty()
                        ? fmt::format("GRANT mailroom_submitter TO {}", quoted_name(role))
                        : failure.hint;
  const auto words = hint.empty() ? failure.message : fmt::format("{}; {}", failure.message, hint);
  if (failure.sqlstate == db::sqlstate::over_limit)
    return {replies::over_limit.code, replies::over_limit.status, words};
  if (failure.sqlstate == insufficient_privilege) return {550, "5.7.1", words};
  if (failure.sqlstate == unique_violation) return {554, "5.5.4", words};
  return {554, "5.6.0", words};
}

/// The SQLSTATE invalid_password: a login may be refused for other reasons.
bool is_about_password(const std::string& problem) {
  return problem.find(" 28P01: ") != std::string::npos;
}

}  // namespace

bool may_pass(std::string_view sqlstate) {
  constexpr std::array<std::string_view, 10> classes{"08", "53", "57", "58", "40",
                                                     "XX", "0A", "28", "3F", "42"};
  if (sqlstate == insufficient_privilege) return false;
  return sqlstate.empty() || sqlstate == "25006" || sqlstate == "55P03" ||
         std::ranges::find(classes, sqlstate.substr(0, 2)) != classes.end();
}

std::optional<Reply> SubmissionSession::reply_to_failed_login() const {
  // Programs disable an account after 535: only the server's word for a wrong password is one.
  const bool is_wrong = session_.used_password() && is_about_password(session_.problem());
  return is_wrong ? replies::wrong_password : replies::database_away_for_login;
}

std::optional<Reply> SubmissionSession::refusal_of_role(const DatabaseAccess& access, const std::string& role,
                                                        const std::string& problem) {
  const bool is_not_let_in = problem.find(" 28000: ") != std::string::npos;
  if (!is_not_let_in && !is_about_password(problem)) return std::nullopt;
  db::BinarySession own(access.target, {}, {}, "mailroom submission", patience_of_statement(access.patience));
  db::BinaryArray names(Element::text, 1);
  names.add(role);
  const auto answer = own.run_prepared(
      "role", "SELECT rolcanlogin AS may_log_in FROM pg_roles WHERE rolname = ANY ($1)", {&names});
  const auto* rows = std::get_if<db::TextRows>(&answer);
  if (rows == nullptr) return std::nullopt;
  const auto name = quoted_name(role);
  if (rows->empty())
    return Reply{
        550, "5.7.1",
        fmt::format("the database has no role {0}; CREATE ROLE {0} LOGIN IN ROLE mailroom_submitter", name)};
  if (rows->front().at("may_log_in") != "t")
    return Reply{550, "5.7.1", fmt::format("the role {0} may not log in; ALTER ROLE {0} LOGIN", name)};
  // A password may be about to change.
  if (!is_not_let_in) return std::nullopt;
  return Reply{
      451, "4.7.0",
      fmt::format("the database does not let the service in as {}, see pg_hba.conf: {}", name, problem)};
}

SubmissionSession::SubmissionSession(const DatabaseAccess& access, const std::string& role,
                                     const std::string& password)
    : role_(role),
      schema_(access.target.schema),
      session_(access.target, role, password, "mailroom submission", patience_of_statement(access.patience)) {
}

std::optional<Reply> SubmissionSession::problem_of_role(bool needs_password) {
  if (needs_password && !session_.used_password()) return replies::no_password_asked;
  const auto answer = session_.run(
      fmt::format("SELECT session_user AS name, NOT r.rolsuper AND session_user = current_user AND "
                  "coalesce(has_function_privilege(to_regproc('{}'), 'EXECUTE'), false) AS may_submit "
                  "FROM pg_roles r WHERE r.rolname = session_user",
                  qualified(schema_, "mailroom_submit")));
  const auto* rows = std::get_if<db::TextRows>(&answer);
  if (rows == nullptr || rows->size() != 1) return replies::database_away_for_login;
  const auto& row = rows->front();
  // One reply for all of it: a guesser learns nothing of roles.
  if (row.at("name") != role_ || row.at("may_submit") != "t") return replies::wrong_password;
  return std::nullopt;
}

std::variant<SubmissionSession::Stored, SubmissionSession::Away, Reply> SubmissionSession::store(
    const std::vector<const SubmittedMail*>& mails) {
  const auto count = mails.size();
  db::BinaryArray paths(Element::text, count);
  db::BinaryArray recipients(Element::text, count);
  db::BinaryArray raw(Element::bytea, count);
  db::BinaryArray keys(Element::text, count);
  db::BinaryArray references(Element::text, count);
  db::BinaryArray profiles(Element::text, count);
  db::BinaryArray actions(Element::text, count);
  db::BinaryArray subjects(Element::text, count);
  db::BinaryArray times(Element::timestamptz, count);
  db::BinaryArray ends(Element::timestamptz, count);
  db::BinaryArray options(Element::jsonb, count);
  db::BinaryArray topics(Element::text, count);
  for (const auto* mail : mails) {
    paths.add(mail->return_path);
    recipients.add(mail->recipients);
    raw.add(mail->raw);
    keys.add(mail->key);
    references.add_or_null(mail->reference);
    profiles.add_or_null(mail->profile);
    actions.add_or_null(mail->action);
    subjects.add_or_null(mail->subject);
    mail->send_after ? times.add(*mail->send_after) : times.add_null();
    mail->expires_at ? ends.add(*mail->expires_at) : ends.add_null();
    options.add_or_null(mail->keeps_return_path ? keep_return_path : "");
    topics.add_or_null(mail->topic);
  }
  const auto answer = session_.run_prepared(
      "submit",
      fmt::format("SELECT key, id FROM {}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
                  qualified(schema_, "mailroom_submit")),
      {&paths, &recipients, &raw, &keys, &references, &profiles, &actions, &subjects, &times, &ends, &options,
       &topics});
  if (const auto* failure = std::get_if<db::StatementFailure>(&answer)) {
    if (!session_.is_open() || may_pass(failure->sqlstate)) {
      // A lock or a conflict leaves the session as it was.
      const bool is_sound =
          failure->sqlstate.starts_with("40") || failure->sqlstate == "55P03" || failure->sqlstate == "57014";
      return Away{failure->message, !session_.is_open() || !is_sound};
    }
    return refusal_of(*failure, role_);
  }
  Stored stored;
  for (const auto& row : std::get<db::TextRows>(answer))
    stored.ids[row.at("key")] = row.at("id");
  return stored;
}

}  // namespace mailroom::submission
