// Rounds ages to two units, and says of another user's session that it needs pg_monitor.

#include "status/session_text.hpp"

#include <fmt/format.h>

#include "base/duration.hpp"

namespace mailroom {

std::string age_text(Milliseconds age) {
  using namespace std::chrono_literals;
  if (age < 1s) return format_duration(age);
  if (age >= 24h) return format_duration(std::chrono::floor<std::chrono::hours>(age));
  if (age >= 1h) return format_duration(std::chrono::floor<std::chrono::minutes>(age));
  return format_duration(std::chrono::floor<std::chrono::seconds>(age));
}

std::string session_text(const ServerSession& session) {
  return fmt::format("pid {} ({}, user {})", session.pid,
                     session.application.empty() ? "no application name" : session.application, session.user);
}

std::string activity_text(const ServerSession& session) {
  if (!session.readable) return "owned by another user; needs pg_monitor";
  auto text = session.state;
  if (session.silent_for) text += " for " + age_text(*session.silent_for);
  if (!session.wait.empty()) text += ", waiting for " + session.wait;
  if (!session.command.empty()) text += (session.state == "active" ? " in " : " after ") + session.command;
  return text;
}

}  // namespace mailroom
