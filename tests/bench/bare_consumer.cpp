// The least that a consumer does: it listens, notes durably how far it is and reads what is new by one
// statement, and writes the lines. What it takes is what the machine takes. It knows no lease and no second
// consumer, and it would lose a token whose transaction ends after that of a higher id.

#include <array>
#include <cstdlib>
#include <fstream>
#include <poll.h>
#include <unistd.h>

#include "base/output.hpp"
#include "bench/latency.hpp"
#include "db/connection.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::bench {
namespace {

const char* const claim_sql = R"(
WITH fresh AS (
  SELECT t.id, concat_ws(',', 2, a.email, a.login, encode(t.secret, 'hex'), t.code) AS line
  FROM tokens t JOIN accounts a ON a.id = t.account
  WHERE t.id > (SELECT max(last) FROM bare_marks) ORDER BY t.id LIMIT 100),
marked AS (INSERT INTO bare_marks (last) SELECT max(id) FROM fresh HAVING count(*) > 0)
SELECT line FROM fresh)";

/// Writes what is there.
void claim_all(db::Connection& connection, Output& output) {
  for (;;) {
    const auto rows = connection.run_prepared("claim");
    std::string lines;
    for (const auto& row : rows)
      lines += row.text("line") + '\n';
    if (lines.empty()) return;
    output.write(lines);
  }
}

}  // namespace

int run_bare_consumer() {
  process::StopSignal signal;
  db::Connection connection(std::getenv("MAILROOM_DATABASE_URL"), "bare consumer");
  Output output(STDOUT_FILENO);
  connection.run(
      "DROP TABLE IF EXISTS bare_marks; CREATE TABLE bare_marks (last bigint PRIMARY KEY); INSERT INTO bare_marks VALUES (0)");
  connection.prepare("claim", claim_sql);
  connection.listen("token_insert");
  std::ofstream(std::getenv("BENCH_READY")).flush();
  while (!signal.requested()) {
    std::array<pollfd, 2> ready{{{connection.socket(), POLLIN, 0}, {signal.fd(), POLLIN, 0}}};
    poll(ready.data(), ready.size(), -1);
    if (connection.take_notifications()) claim_all(connection, output);
  }
  return 0;
}

}  // namespace mailroom::bench
