// The role is set for the transaction alone, after the keys were looked at.

#include "http_door/keyed_session.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "db/conninfo.hpp"
#include "db/errors.hpp"

namespace mailroom::http_door {
namespace {

std::string quoted_role(std::string_view name) {
  std::string text = "\"";
  for (const char c : name)
    text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

/// `{"\\x00ff"}`: an array of bytea.
std::string array_of(const std::vector<std::string>& digests) {
  std::string text = "{";
  for (const auto& digest : digests)
    text += fmt::format("{}\"\\\\x{}\"", text.size() == 1 ? "" : ",", digest);
  return text + "}";
}

/// Of rows of mailroom_limit_of().
std::optional<RoleRate> rate_of(const db::TextRows& rows) {
  if (rows.empty() || rows.front().at("mails").empty()) return std::nullopt;
  const auto number = [&](const char* column) {
    return parse_number<std::int64_t>(rows.front().at(column)).value_or(0);
  };
  return RoleRate{.mails = number("mails"),
                  .period = std::chrono::microseconds(number("period")),
                  .used_until = steady_now() + std::chrono::microseconds(number("used"))};
}

}  // namespace

KeyedSession::KeyedSession(const submission::DatabaseAccess& access) : access_(access) {}

std::string KeyedSession::qualified(std::string_view name) const {
  return access_.target.schema.empty() ? std::string(name)
                                       : quoted_role(access_.target.schema) + "." + std::string(name);
}

bool KeyedSession::connect(Away& away) {
  if (session_ && session_->is_open()) return true;
  session_.emplace(access_.target, "", "", "mailroom submission",
                   submission::patience_of_statement(access_.patience));
  if (!session_->is_open()) {
    away.reason = session_->problem();
    return false;
  }
  const auto set = session_->run("SET TimeZone = 'UTC'; SET DateStyle = 'ISO'");
  if (const auto* failure = std::get_if<db::StatementFailure>(&set)) away.reason = failure->message;
  return session_->is_open();
}

db::Statement KeyedSession::limit_of(const std::string& role) const {
  return {.sql = fmt::format("SELECT mails, period, used FROM {}($1)", qualified("mailroom_limit_of")),
          .values = {role}};
}

std::variant<std::vector<db::TextRows>, db::StatementFailure, Away> KeyedSession::run(
    const std::vector<std::string>& digests, const std::string& role,
    const std::vector<db::Statement>& statements, Milliseconds wait, bool looks_at_rate) {
  Away away;
  if (!connect(away)) return away;
  std::vector<db::Statement> all{
      {.sql = fmt::format("SELECT {}($1::bytea[], $2)", qualified("mailroom_use_keys")),
       .values = {array_of(digests), role}},
      {.sql = "SET LOCAL ROLE " + quoted_role(role)},
      {.sql = fmt::format("SET LOCAL lock_timeout = {}", wait.count())}};
  all.insert(all.end(), statements.begin(), statements.end());
  if (looks_at_rate) {
    all.push_back({.sql = "RESET ROLE"});
    all.push_back(limit_of(role));
  }
  auto result = session_->transact(all);
  if (auto* failure = std::get_if<db::StatementFailure>(&result)) {
    if (session_->is_open() && !submission::may_pass(failure->sqlstate)) return std::move(*failure);
    // A key that is not good, a limit, and a lock or a conflict, which leave the session as it was.
    if (session_->is_open() &&
        (failure->sqlstate == "28000" || failure->sqlstate == db::sqlstate::over_limit ||
         failure->sqlstate == "55P03" || failure->sqlstate.starts_with("40")))
      return std::move(*failure);
    away.reason = failure->message;
    away.may_be_stored = failure->sqlstate.empty();
    session_.reset();
    return away;
  }
  auto& rows = std::get<std::vector<db::TextRows>>(result);
  if (looks_at_rate) {
    rate_ = rate_of(rows.back());
    rows.resize(rows.size() - 2);
  }
  rows.erase(rows.begin(), rows.begin() + statements_before);
  return std::move(rows);
}

std::variant<std::optional<Credentials>, Away> KeyedSession::find(const std::string& digest) {
  Away away;
  if (!connect(away)) return away;
  auto result = session_->transact(
      {{.sql = fmt::format("SELECT role, permission FROM {}($1::bytea)", qualified("mailroom_find_key")),
        .values = {"\\x" + digest}}});
  if (const auto* failure = std::get_if<db::StatementFailure>(&result)) {
    away.reason = failure->message;
    if (!session_->is_open()) session_.reset();
    return away;
  }
  const auto& rows = std::get<std::vector<db::TextRows>>(result).front();
  if (rows.empty() || rows.front().at("role").empty()) return std::nullopt;
  Credentials found{.digest = digest,
                    .id = {},
                    .role = rows.front().at("role"),
                    .may_only_send = rows.front().at("permission") == "sending_access"};
  const auto limit = session_->transact({limit_of(found.role)});
  if (const auto* limits = std::get_if<std::vector<db::TextRows>>(&limit)) rate_ = rate_of(limits->front());
  found.has_rate = rate_.has_value();
  return found;
}

}  // namespace mailroom::http_door
