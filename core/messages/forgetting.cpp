// Looks for an address as it was typed and as it is mailed; migrations/functions/forgetting.sql does the
// rest. It reaches neither what a relay has kept, nor the rows of the application, nor backups.

#include "messages/forgetting.hpp"

#include <algorithm>
#include <optional>
#include <variant>

#include "base/encoded_text.hpp"
#include "base/text.hpp"
#include "db/values.hpp"
#include "mail/address.hpp"
#include "mail/link_template.hpp"
#include "messages/raw_text.hpp"

namespace mailroom::messages {
namespace {

/// As JSON has it within a text: with escaped quotes.
std::string json_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text)
    escaped += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return escaped;
}

std::optional<std::string> reference_of(const ForgetRequest& request) {
  return request.reference.empty() ? std::nullopt : std::optional(request.reference);
}

constexpr const char* plan_sql = R"(
WITH found AS MATERIALIZED (SELECT * FROM mailroom_messages_of($1::text[], $2)),
marked AS MATERIALIZED (
  SELECT f.*, EXISTS (SELECT FROM mailroom_schedule s WHERE s.message = f.id) OR EXISTS (
    SELECT FROM tokens t
    WHERE t.message = f.id AND (f.is_whole OR t.recipient = ANY (f.places))
      AND mailroom_is_live(t.consumed_at, t.expires_at, extract(epoch FROM clock_timestamp())::bigint)
      AND NOT EXISTS (SELECT FROM mailroom_deliveries d WHERE d.token = t.id AND d.accepted_at IS NOT NULL)) AS waits
  FROM found f),
named AS MATERIALIZED (
  SELECT n.has_ended, n.id IN (SELECT f.id FROM found f) AS is_counted FROM mailroom_messages_naming($1::text[], $3::bigint[]) n)
SELECT count(*) AS messages, count(*) FILTER (WHERE NOT is_whole) AS shared, count(*) FILTER (WHERE waits) AS waiting,
  (SELECT count(*) FROM mailroom_deliveries d
   WHERE mailroom_canonical(d.address) = ANY ($1::text[]) OR mailroom_mentions(concat_ws(E'\n', d.reply, d.message_id, d.earlier_attempts), $1::text[])
     OR d.token IN (
       SELECT t.id FROM marked k JOIN tokens t ON t.message = k.id WHERE k.is_whole OR t.recipient = ANY (k.places))) AS deliveries,
  (SELECT count(*) FROM accounts a WHERE mailroom_canonical(a.email) = ANY ($1::text[])) AS accounts,
  (SELECT count(*) FROM named n WHERE n.has_ended AND NOT n.is_counted) AS named,
  (SELECT count(*) FROM named n WHERE NOT n.has_ended) AS kept,
  (SELECT count(*) FROM (
     SELECT concat_ws(E'\n', reason, details) FROM mailroom_operations UNION ALL SELECT concat_ws(E'\n', reason, learnt) FROM mailroom_sinks
     UNION ALL SELECT pause_reason FROM mailroom_queues UNION ALL SELECT reason FROM mailroom_schema_history
     UNION ALL SELECT concat_ws(E'\n', address, reply) FROM mailroom_outcomes) o (text)
   WHERE mailroom_mentions(o.text, $1::text[])) AS others,
  (SELECT count(*) FROM mailroom_suppressions s WHERE s.address = ANY ($1::text[])) AS suppressions
FROM marked)";

}  // namespace

std::vector<std::string> forms_of(const ForgetRequest& request) {
  std::vector<std::string> all;
  const auto add = [&](const std::string& address) {
    if (std::ranges::find(all, address) == all.end()) all.push_back(address);
  };
  for (const auto& typed : request.addresses) {
    const auto address = mail::address_of_mailbox(typed);
    const auto parsed = mail::parse_address(address);
    std::vector<std::string> forms{lower_case(address)};
    if (const auto* mailed = std::get_if<mail::Address>(&parsed))
      forms.insert(forms.end(), {mail::canonical_text(*mailed), lower_case(mailed->text()),
                                 lower_case(mail::international_text(*mailed))});
    for (const auto& form : forms) {
      const auto at = form.rfind('@');
      add(form);
      add(lower_case(percent_encoded(form)));
      add(form.substr(0, at) + "%40" + form.substr(at + 1));
      add(json_escaped(form));
    }
  }
  return all;
}

ForgetPlan plan_forgetting(db::Connection& connection, const ForgetRequest& request) {
  const auto addresses = forms_of(request);
  const auto row = connection.run(plan_sql, db::array_text(addresses), reference_of(request),
                                  db::array_text(raw_mails_naming(connection, addresses)))[0];
  return {.messages = row.number("messages"),
          .shared = row.number("shared"),
          .waiting = row.number("waiting"),
          .named = row.number("named"),
          .kept = row.number("kept"),
          .deliveries = row.number("deliveries"),
          .others = row.number("others"),
          .accounts = row.number("accounts"),
          .suppressions = row.number("suppressions")};
}

Forgotten forget(db::Connection& connection, const ForgetRequest& request,
                 const queue::OperationAuthor& author) {
  Forgotten forgotten;
  const auto searched = forms_of(request);
  const auto raw = db::array_text(raw_mails_naming(connection, searched));
  connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, author);
    const auto addresses = db::array_text(searched);
    db::Connection::execute(
        transaction,
        "SELECT set_config('mailroom.reason', coalesce(mailroom_without_addresses($1, $2::text[]), ''), true)",
        author.reason, addresses);
    const auto row = db::Connection::execute(
        transaction,
        "SELECT messages, cancelled, sending, named, kept, deliveries FROM mailroom_forget($1::text[], $2, "
        "$3::bigint[])",
        addresses, reference_of(request), raw)[0];
    forgotten = {.messages = row.number("messages"),
                 .cancelled = row.number("cancelled"),
                 .sending = row.number("sending"),
                 .named = row.number("named"),
                 .kept = row.number("kept"),
                 .deliveries = row.number("deliveries")};
  });
  return forgotten;
}

}  // namespace mailroom::messages
