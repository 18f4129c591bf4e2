// Reads mailroom_home; migrations/functions/home.sql compares it with this place.

#include "queue/home.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "db/values.hpp"

namespace mailroom::queue {

Home read_home(db::Connection& connection) {
  const auto row = connection.run(R"(
SELECT coalesce(mailroom_home_problem(NULL), mailroom_loaded_problem(), '') AS problem, h.adopted_by, floor(extract(epoch FROM h.adopted_at))::bigint AS adopted_at
FROM (SELECT) one LEFT JOIN mailroom_home h ON true)")[0];
  Home home{.problem = row.text("problem"),
            .hosts = connection.run("SELECT unnest(hosts) FROM mailroom_home").values<std::string>(),
            .adopted_by = row.text("adopted_by")};
  if (const auto at = row.optional<std::int64_t>("adopted_at"))
    home.adopted_at = Moment(std::chrono::seconds(*at));
  return home;
}

std::vector<ForeignConsumer> read_foreign_consumers(pqxx::transaction_base& transaction) {
  std::vector<ForeignConsumer> found;
  for (const auto& row : db::Connection::execute(transaction, R"(
SELECT min(a.pid) AS pid, a.application_name AS application
FROM mailroom_home h, pg_stat_activity a
WHERE a.datname = current_database() AND a.application_name ~ '^mailroom (send|collect) .*@.+:[0-9]+$'
  AND substring(a.application_name FROM '@([^@]+):[0-9]+$') <> ALL (h.hosts)
GROUP BY a.application_name ORDER BY a.application_name)"))
    found.push_back({.pid = row.number<int>("pid"), .application = row.text("application")});
  return found;
}

std::string foreign_consumer_text(const ForeignConsumer& consumer) {
  constexpr std::string_view program = "mailroom ";
  return fmt::format(
      "{} is connected from a host that may not serve this database: it ends before it takes another token, "
      "and what it has taken it may still send",
      consumer.application.substr(program.size()));
}

WaitingHere count_waiting_here(db::Connection& connection) {
  const auto row = connection.run(fmt::format(R"(
SELECT
  (SELECT count(*) FROM (
    SELECT FROM tokens t WHERE t.id > (SELECT min(cursor) FROM mailroom_queue_states())
      AND mailroom_is_live(t.consumed_at, t.expires_at, extract(epoch FROM clock_timestamp())::bigint) LIMIT $1) w) AS tokens,
  (SELECT count(*) FROM (
    SELECT FROM mailroom_deliveries d JOIN tokens t ON t.id = d.token WHERE d.not_before IS NOT NULL
      AND mailroom_is_live(t.consumed_at, t.expires_at, extract(epoch FROM clock_timestamp())::bigint) LIMIT $1) d) AS deferred,
  (SELECT count(*) FROM (SELECT FROM mailroom_schedule LIMIT $1) s) AS scheduled,
  (SELECT {} FROM mailroom_batches) AS emitted_us)",
                                              db::microseconds_sql("max(emitted_at)")),
                                  WaitingHere::most_counted)[0];
  return {.tokens = row.number("tokens"),
          .deferred = row.number("deferred"),
          .scheduled = row.number("scheduled"),
          .last_batch_at = row.optional_moment<std::chrono::microseconds>("emitted_us")};
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
(SELECT 'mails of queue ' || queue || ' have left this database by way of ' || coalesce(sink, 'a relay') AS found
 FROM mailroom_deliveries WHERE accepted_at IS NOT NULL AND sink IS DISTINCT FROM $1 LIMIT 1)
UNION ALL
(SELECT 'tokens of queue ' || queue || ' were handed over from this database by mailroom collect'
 FROM mailroom_batches WHERE emitted > 0 AND claimed_by LIKE 'mailroom collect%' LIMIT 1))",
                                    sink);
  if (found.empty()) return;
  throw Error(ExitCode::declined,
              fmt::format("{}: it may be in production", shown_text(found[0].text("found"))),
              "--capture takes what is due, so that nobody gets it: use a database of your own, or "
              "--capture-anyway");
}

}  // namespace mailroom::queue
