// The exit codes as the manual and docs/exit-codes.md explain them.

#include "base/error.hpp"

#include <array>

namespace mailroom {
namespace {

constexpr std::array<ExitStatus, 12> statuses{{
    {"0", "done", ""},
    {"1",
     "failed: the server refused a statement, row security hides rows, something unexpected; message show --rendered, if the mail differs from the one on record",
     "read the message"},
    {"2", "the command line is wrong: a command, an option or its value",
     "the hint names the option that was probably meant"},
    {"3",
     "configuration: a value in the file or the environment, a key, the file, a mail template; an unknown queue; a pooler "
     "in an unsupported mode; a copy of the database, from which nothing is sent",
     "fix what the message names"},
    {"4",
     "the database, or the relay, program or server that takes tokens, cannot be reached, or was lost for good",
     "check server and connection string; collect --wait keeps trying"},
    {"5",
     "the schema is missing, too old, dirty, drifted or needs a newer mailroom; a table, column, function "
     "or type is missing; a trigger or sequence is not as the queue needs it, or the sequence has reached "
     "the largest bigint",
     "mailroom migrate, mailroom migrate verify, or the statement in the hint"},
    {"6", "another process holds the lock or listens at the address of --metrics, or a table is locked",
     "wait, or find the process with the statement in the hint"},
    {"7",
     "declined, no terminal to ask on, or more than --max or --max-replay allows; send --capture on a "
     "database from which mails have been sent",
     "pass --yes, or raise the limit"},
    {"8",
     "a genuine token that is expired, consumed, of an account in the wrong state, or not in this database; "
     "a name that is not found; status or doctor found a failure; reconcile found a token that was "
     "missed or is unexplained; send --once, or collect --once with a sink, tried tokens and each was rejected; "
     "message forget while a mail to that address was leaving, or one that names it can still be sent to others",
     "the message or the finding says what fixes it"},
    {"9", "a malformed or forged token", ""},
    {"10", "the output was closed or cannot be written",
     "a collector's batch was not acknowledged and will be emitted again"},
    {"130, 143", "stopped by SIGINT or SIGTERM, a service by the second; the server has ended the statement",
     "the hint says what was done; a service's batch in flight may be emitted again"},
}};

}  // namespace

std::span<const ExitStatus> exit_statuses() {
  return statuses;
}

}  // namespace mailroom
