// The rules about sequences, one for all of them.

#include <fmt/format.h>

#include "base/text.hpp"
#include "status/fix_commands.hpp"
#include "status/queue_health.hpp"

namespace mailroom {
namespace {

constexpr auto sequence_code = "sequence_behind";

}  // namespace

std::optional<QueueFinding> judge_cursor(const std::string& queue, std::int64_t cursor, std::int64_t drawn) {
  if (cursor <= drawn) return std::nullopt;
  return QueueFinding{
      Severity::failure, sequence_code,
      fmt::format(
          "tokens_id_seq is at {}, behind the cursor of the queue {} at {}: every claim fails. Tokens were "
          "truncated or restored. The fix emits the tokens created since then and no others",
          with_thousands(drawn), queue, with_thousands(cursor)),
      fix_sequence_command};
}

QueueFinding judge_sequence(const TableSequence& sequence) {
  return {sequence.is_of_mailroom() ? Severity::failure : Severity::warning, sequence_code,
          fmt::format("{} is at {}, behind the newest id of {}, {}: {}", sequence.name,
                      with_thousands(sequence.position), sequence.table, with_thousands(sequence.newest),
                      sequence.consequence()),
          fix_sequence_command};
}

}  // namespace mailroom
