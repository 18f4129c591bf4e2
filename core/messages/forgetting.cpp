// Looks for an address as it was typed and as it is mailed; migrations/functions/forgetting.sql does the
// rest.

#include "messages/forgetting.hpp"

#include <optional>
#include <variant>

#include "base/text.hpp"
#include "db/values.hpp"
#include "mail/address.hpp"

namespace mailroom {
namespace {

/// In lower case, each also with its domain in ASCII.
std::string addresses_of(const ForgetRequest& request) {
  std::vector<std::string> all;
  for (const auto& typed : request.addresses) {
    all.push_back(lower_case(typed));
    const auto parsed = parse_address(typed);
    if (const auto* address = std::get_if<Address>(&parsed)) {
      const auto mailed = lower_case(address->text());
      if (mailed != all.back()) all.push_back(mailed);
    }
  }
  return array_text(all);
}

std::optional<std::string> reference_of(const ForgetRequest& request) {
  return request.reference.empty() ? std::nullopt : std::optional(request.reference);
}

}  // namespace

ForgetPlan plan_forgetting(Connection& connection, const ForgetRequest& request) {
  const auto row = connection.run(R"(
WITH found AS MATERIALIZED (SELECT * FROM mailroom_messages_of($1::text[], $2)),
marked AS MATERIALIZED (
  SELECT f.*, EXISTS (SELECT FROM mailroom_schedule s WHERE s.message = f.id) OR EXISTS (
    SELECT FROM tokens t
    WHERE t.message = f.id AND (f.is_whole OR t.recipient = ANY (f.places))
      AND mailroom_is_live(t.consumed_at, t.expires_at, extract(epoch FROM clock_timestamp())::bigint)
      AND NOT EXISTS (SELECT FROM mailroom_deliveries d WHERE d.token = t.id AND d.accepted_at IS NOT NULL)) AS waits
  FROM found f)
SELECT count(*), count(*) FILTER (WHERE NOT is_whole), count(*) FILTER (WHERE waits),
  (SELECT count(*) FROM mailroom_deliveries d
   WHERE lower(d.address) = ANY ($1::text[]) OR d.token IN (
     SELECT t.id FROM marked k JOIN tokens t ON t.message = k.id WHERE k.is_whole OR t.recipient = ANY (k.places))),
  (SELECT count(*) FROM accounts a WHERE lower(a.email) = ANY ($1::text[]))
FROM marked)",
                                  addresses_of(request), reference_of(request))[0];
  return {.messages = row[0].as<std::int64_t>(),
          .shared = row[1].as<std::int64_t>(),
          .waiting = row[2].as<std::int64_t>(),
          .deliveries = row[3].as<std::int64_t>(),
          .accounts = row[4].as<std::int64_t>()};
}

Forgotten forget(Connection& connection, const ForgetRequest& request, const OperationAuthor& author) {
  Forgotten forgotten;
  connection.transact([&](pqxx::work& transaction) {
    set_author(transaction, author);
    const auto addresses = addresses_of(request);
    Connection::execute(
        transaction,
        "SELECT set_config('mailroom.reason', coalesce(mailroom_without_addresses($1, $2::text[]), ''), true)",
        author.reason, addresses);
    const auto row = Connection::execute(
        transaction, "SELECT messages, cancelled, sending, deliveries FROM mailroom_forget($1::text[], $2)",
        addresses, reference_of(request))[0];
    forgotten = {.messages = row[0].as<std::int64_t>(),
                 .cancelled = row[1].as<std::int64_t>(),
                 .sending = row[2].as<std::int64_t>(),
                 .deliveries = row[3].as<std::int64_t>()};
  });
  return forgotten;
}

}  // namespace mailroom
