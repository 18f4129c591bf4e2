// Reads mailroom_bounces. Amazon SES reviews a sender at 5 % bounces or 0.1 % complaints.

#include "status/came_back.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "status/queue_health.hpp"

namespace mailroom {
namespace {

constexpr const char* reports_sql = R"(
SELECT count(*) FILTER (WHERE queue = $1 AND kind = 'hard'),
  count(*) FILTER (WHERE queue = $1 AND kind IN ('soft', 'undetermined')),
  count(*) FILTER (WHERE queue = $1 AND kind = 'complaint'),
  count(*) FILTER (WHERE queue = $1 AND kind = 'delivered'),
  count(*) FILTER (WHERE token IS NULL)
FROM mailroom_bounces WHERE at > clock_timestamp() - interval '1 hour')";

constexpr std::int64_t fewest_bounces = 10;
constexpr std::int64_t fewest_complaints = 3;

}  // namespace

CameBack read_came_back(pqxx::transaction_base& transaction, const std::string& queue) {
  const auto allowed = Connection::execute(transaction, R"(
SELECT bool_and(has_column_privilege('mailroom_bounces', c, 'SELECT')) AND NOT row_security_active('mailroom_bounces') FROM unnest(ARRAY['at', 'queue', 'token', 'kind']) c)");
  if (!allowed[0][0].as<bool>()) return {.is_known = false};
  const auto row = Connection::execute(transaction, reports_sql, queue)[0];
  return {.hard = row[0].as<std::int64_t>(),
          .bounced = row[1].as<std::int64_t>(),
          .complaints = row[2].as<std::int64_t>(),
          .delivered = row[3].as<std::int64_t>(),
          .unmatched = row[4].as<std::int64_t>()};
}

std::vector<QueueFinding> judge_came_back(const CameBack& reports, std::int64_t accepted) {
  std::vector<QueueFinding> found;
  const auto warn = [&](std::string code, const std::string& what, const char* limit, const char* words) {
    found.push_back(
        {Severity::warning,
         std::move(code),
         fmt::format(
             "{} came back within the last hour, in which {} accepted: providers stop senders above {}", what,
             counted(accepted, "mail") + (accepted == 1 ? " was" : " were"), limit),
         {},
         words});
  };
  if (reports.hard >= fewest_bounces && reports.hard * 20 >= accepted)
    warn(
        "many_bounces", counted(reports.hard, "hard bounce"), "5 %",
        "mailroom audit --outcome bounced --since 1d names the addresses. They are suppressed; look where they come from, as "
        "a form without a check or an old list");
  if (reports.complaints >= fewest_complaints && reports.complaints * 1000 >= accepted)
    warn("many_complaints", counted(reports.complaints, "complaint"), "0.1 %",
         "mailroom audit --outcome complained --since 1d names who called which mail spam");
  return found;
}

}  // namespace mailroom
