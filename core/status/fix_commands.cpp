// Quotes names for a shell and for SQL.

#include "status/fix_commands.hpp"

#include <fmt/format.h>

#include "base/wording.hpp"
#include "db/search_path.hpp"

namespace mailroom::status {

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
      db::in_schema(
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

}  // namespace mailroom::status
