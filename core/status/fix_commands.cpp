// Accepts a process only if its host and pid are safe in a shell, since any session may choose its name.

#include "status/fix_commands.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/text.hpp"
#include "db/search_path.hpp"

namespace mailroom {
namespace {

/// Any user may give a session any name, and an operator types what this accepts into a shell.
bool is_host(const std::string& text) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), plain);
}

bool is_pid(const std::string& text) {
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return !text.empty() && text.size() <= 10 && text.front() != '0' &&
         std::all_of(text.begin(), text.end(), digit);
}

}  // namespace

std::optional<CollectorProcess> collector_process(const std::string& application) {
  const auto at = application.rfind('@');
  const auto colon = application.rfind(':');
  if (at == std::string::npos || colon == std::string::npos || colon <= at + 1) return std::nullopt;
  const auto is_of = [&](const std::string& program) {
    return application.starts_with(program) && (at == program.size() || application[program.size()] == ' ');
  };
  if (!is_of("mailroom collect") && !is_of("mailroom send")) return std::nullopt;
  CollectorProcess process{.host = application.substr(at + 1, colon - at - 1),
                           .pid = application.substr(colon + 1)};
  return is_host(process.host) && is_pid(process.pid) ? std::optional(process) : std::nullopt;
}

std::string sql_literal(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

Fix resume_queue(const std::string& queue) {
  return {FixKind::resume_queue, "mailroom queue resume " + shell_word(queue)};
}

Fix replay_batch(const std::string& queue, std::int64_t batch, const std::string& schema) {
  return {
      FixKind::replay_batch,
      in_schema(
          fmt::format(
              "SELECT @.mailroom_replay({}, ARRAY(SELECT generate_series(lower(g), upper(g) - 1) FROM "
              "@.mailroom_batches, unnest(@.mailroom_batch_ids(ids, ids_mask)) g WHERE id = {}), '{{}}');",
              sql_literal(queue), batch),
          schema)};
}

Fix end_session(int backend_pid) {
  return {FixKind::end_session, fmt::format("SELECT pg_terminate_backend({});", backend_pid)};
}

Fix continue_process(const CollectorProcess& process, const std::string& here) {
  const auto command = "kill -CONT " + process.pid;
  return {FixKind::continue_process,
          process.host == here ? command : fmt::format("ssh {} {}", process.host, command)};
}

std::string find_service(const std::optional<CollectorProcess>& last, const std::string& here) {
  const std::string command = "systemctl list-unit-files 'mailroom*'";
  return (!last || last->host == here ? command : fmt::format("ssh {} \"{}\"", last->host, command)) +
         " lists the services there are; without systemd, start mailroom send, or collect with its reader";
}

}  // namespace mailroom
