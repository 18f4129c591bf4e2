// Reads mailroom_home; migrations/functions/home.sql compares it with this place.

#include "queue/home.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "db/values.hpp"

namespace mailroom::queue {

Home read_home(db::Connection& connection) {
  const auto rows = connection.run(R"(
SELECT coalesce(mailroom_home_problem(NULL), ''), h.adopted_by, floor(extract(epoch FROM h.adopted_at))::bigint
FROM (SELECT) one LEFT JOIN mailroom_home h ON true)");
  Home home{.problem = rows[0][0].c_str(), .hosts = {}, .adopted_by = rows[0][1].c_str()};
  if (!rows[0][2].is_null()) home.adopted_at = Moment(std::chrono::seconds(rows[0][2].as<std::int64_t>()));
  for (const auto& row : connection.run("SELECT unnest(hosts) FROM mailroom_home"))
    home.hosts.emplace_back(row[0].c_str());
  return home;
}

WaitingHere count_waiting_here(db::Connection& connection) {
  const auto row = connection.run(fmt::format(R"(
SELECT
  (SELECT count(*) FROM (
    SELECT FROM tokens t WHERE t.id > (SELECT min(cursor) FROM mailroom_queue_states())
      AND mailroom_is_live(t.consumed_at, t.expires_at, extract(epoch FROM clock_timestamp())::bigint) LIMIT $1) w),
  (SELECT count(*) FROM (
    SELECT FROM mailroom_deliveries d JOIN tokens t ON t.id = d.token WHERE d.not_before IS NOT NULL
      AND mailroom_is_live(t.consumed_at, t.expires_at, extract(epoch FROM clock_timestamp())::bigint) LIMIT $1) d),
  (SELECT count(*) FROM (SELECT FROM mailroom_schedule LIMIT $1) s),
  (SELECT {} FROM mailroom_batches))",
                                              db::microseconds_sql("max(emitted_at)")),
                                  WaitingHere::most_counted)[0];
  return {.tokens = row[0].as<std::int64_t>(),
          .deferred = row[1].as<std::int64_t>(),
          .scheduled = row[2].as<std::int64_t>(),
          .last_batch_at = db::optional_moment_in<std::chrono::microseconds>(row[3])};
}

void adopt_here(db::Connection& connection, const std::vector<std::string>& hosts,
                const OperationAuthor& author) {
  connection.transact([&](pqxx::work& transaction) {
    set_author(transaction, author);
    db::Connection::execute(transaction, "SELECT mailroom_adopt(nullif($1::text[], '{}'))",
                            db::array_text(hosts));
  });
}

// Records of deliveries and batches that were pruned count no more.
void require_no_deliveries(db::Connection& connection, const std::string& sink) {
  const auto found = connection.run(R"(
(SELECT 'mails of queue ' || queue || ' have left this database by way of ' || coalesce(sink, 'a relay')
 FROM mailroom_deliveries WHERE accepted_at IS NOT NULL AND sink IS DISTINCT FROM $1 LIMIT 1)
UNION ALL
(SELECT 'tokens of queue ' || queue || ' were handed over from this database by mailroom collect'
 FROM mailroom_batches WHERE emitted > 0 AND claimed_by LIKE 'mailroom collect%' LIMIT 1))",
                                    sink);
  if (found.empty()) return;
  throw Error(ExitCode::declined, fmt::format("{}: it may be in production", shown_text(found[0][0].c_str())),
              "--capture takes what is due, so that nobody gets it: use a database of your own, or "
              "--capture-anyway");
}

}  // namespace mailroom::queue
