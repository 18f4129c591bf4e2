// Reads the tokens of the period by the index on their creation.

#include "messages/mail_counts.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "db/values.hpp"

namespace mailroom::messages {
namespace {

const char* counted_sql(CountedBy by) {
  switch (by) {
    case CountedBy::role:
      return "coalesce((SELECT m.enqueued_by::text FROM mailroom_messages m WHERE m.id = t.message), '')";
    case CountedBy::action:
      return "t.action::text";
    case CountedBy::domain:
      return "lower(split_part(coalesce(d.address, t.address, ''), '@', -1))";
    case CountedBy::profile:
      return "coalesce((SELECT m.profile FROM mailroom_messages m WHERE m.id = t.message), '')";
    case CountedBy::day:
      return "to_char(to_timestamp(t.created_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD')";
  }
  return "''";
}

}  // namespace

double MailTally::rejected_part() const {
  return rejected == 0 ? 0 : static_cast<double>(rejected) / static_cast<double>(accepted + rejected);
}

std::vector<MailTally> count_mails(db::Connection& connection, const std::vector<CountedBy>& by, Moment since,
                                   Moment until) {
  std::vector<std::string> values;
  for (const auto each : by)
    values.emplace_back(counted_sql(each));
  const auto sql = fmt::format(R"(
SELECT to_jsonb(ARRAY[{0}]::text[]) AS values, count(*) AS mails, count(*) FILTER (WHERE d.accepted) AS accepted,
  count(*) FILTER (WHERE d.state = 'rejected' AND NOT d.accepted) AS rejected,
  count(*) FILTER (WHERE d.state = 'deferred' AND NOT d.accepted) AS deferred,
  count(*) FILTER (WHERE d.unknowns + d.accepted::integer > 1) AS perhaps_twice
FROM (SELECT t.id, t.message, t.action, t.created_at, {1} AS address
      FROM tokens t LEFT JOIN accounts a ON a.id = t.account WHERE t.created_at >= $1 AND t.created_at < $2) t
LEFT JOIN LATERAL (
  SELECT e.state, e.accepted_at IS NOT NULL AS accepted, e.unknowns, e.address FROM mailroom_deliveries e
  WHERE e.token = t.id AND e.queue IN (SELECT j.job_type FROM jobs j) ORDER BY e.accepted_at NULLS LAST LIMIT 1) d ON true
GROUP BY 1 ORDER BY 2 DESC, 1)",
                               joined(values, ", "), db::address_sql);
  std::vector<MailTally> tallies;
  for (const auto& row : connection.run(sql, in_seconds(since), in_seconds(until))) {
    tallies.push_back({.values = parse_json(row.view("values")).get<std::vector<std::string>>(),
                       .mails = row.number("mails"),
                       .accepted = row.number("accepted"),
                       .rejected = row.number("rejected"),
                       .deferred = row.number("deferred"),
                       .perhaps_twice = row.number("perhaps_twice")});
  }
  return tallies;
}

}  // namespace mailroom::messages
