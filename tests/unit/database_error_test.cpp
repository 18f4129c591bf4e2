// What an error of PostgreSQL is about, where its SQLSTATE says something else.

#include <string>
#include <vector>

#include "db/errors.hpp"
#include "support/catch.hpp"

namespace mailroom::test::database_error_test {

TEST_CASE("a file system that is read-only is no missing right") {
  struct Row {
    std::string state, message, source, settled;
  };
  const std::vector<Row> rows{
      {"42501", "could not extend file \"base/5/16384\": Read-only file system", "md.c", "58030"},
      {"42501", "could not open directory \"pg_stat_tmp\": Permission denied", "fd.c", "58030"},
      // In another language only the source tells.
      {"42501", "konnte Datei »base/5/16384« nicht erweitern: Das Dateisystem ist nur lesbar", "md.c",
       "58030"},
      {"42501", "could not write to file \"pg_wal/xlogtemp.7\": Read-only file system", "", "58030"},
      {"42501", "permission denied for function mailroom_submit", "aclchk.c", "42501"},
      {"42501", "permission denied for table could not file \"", "aclchk.c", "42501"},
      {"42501", "new row violates row-level security policy for table \"mailroom_messages\"", "execMain.c",
       "42501"},
      {"42501", "the action notice belongs to another role", "pl_exec.c", "42501"},
      {"42501", "permission denied for function mailroom_submit", "", "42501"},
      {"53100", "could not extend file \"base/5/16384\": No space left on device", "md.c", "53100"},
  };
  for (const auto& row : rows) {
    INFO(row.message << " " << row.source);
    CHECK(db::settled_sqlstate(row.state, row.message, row.source) == row.settled);
  }
}

}  // namespace mailroom::test::database_error_test
