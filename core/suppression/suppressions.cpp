// An address has one row for all mails, and one for each topic that it has left, in the form of
// canonical_text().

#include "suppression/suppressions.hpp"

#include <fmt/format.h>
#include <variant>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "db/values.hpp"
#include "mail/address.hpp"

namespace mailroom::suppression {
namespace {

/// Runs a statement that changes rows for $1 and the topic $4, and records it if it changed any.
std::int64_t change(db::Connection& connection, const char* sql, const char* kind,
                    const std::vector<std::string>& addresses, const std::string& topic,
                    const queue::OperationAuthor& author) {
  std::int64_t changed = 0;
  connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, author);
    changed = db::Connection::execute(transaction, sql, db::array_text(addresses), author.actor,
                                      author.reason, topic)
                  .value<std::int64_t>();
    if (changed == 0) return;
    db::Connection::execute(
        transaction,
        "SELECT mailroom_record_operation($1, NULL, jsonb_strip_nulls(jsonb_build_object('addresses', to_jsonb($2::text[]), "
        "'topic', nullif($3::text, ''))))",
        kind, db::array_text(addresses), topic);
  });
  return changed;
}

}  // namespace

std::vector<Suppression> list_suppressions(db::Connection& connection,
                                           const std::vector<std::string>& addresses, std::int64_t limit,
                                           const std::optional<std::string>& topic) {
  std::vector<Suppression> list;
  for (const auto& row : connection.run(R"(
SELECT s.address, s.topic, s.kind, s.reason, (extract(epoch FROM s.added_at) * 1000000)::bigint AS added_us, s.added_by, b.token
FROM mailroom_suppressions s LEFT JOIN mailroom_bounces b ON b.id = s.bounce
WHERE ($1::text[] = '{}' OR s.address = ANY ($1::text[])) AND ($3::text IS NULL OR s.topic = $3)
ORDER BY s.added_at DESC, s.address LIMIT $2)",
                                        db::array_text(addresses), limit, topic)) {
    auto& each = list.emplace_back();
    each.address = row.text("address");
    each.topic = row.text("topic");
    each.kind = row.text("kind");
    each.reason = row.text("reason");
    each.added_at = Moment(std::chrono::microseconds(row.number("added_us")));
    each.added_by = row.text("added_by");
    if (!row.is_null("token")) each.token = row.number("token");
  }
  return list;
}

std::string suppressed_form(const std::string& typed) {
  const auto parsed = mail::parse_address(mail::address_of_mailbox(typed));
  if (const auto* refusal = std::get_if<mail::Refusal>(&parsed))
    throw Error(ExitCode::usage, fmt::format("'{}' is no address: {}", shown_text(typed), refusal->reason));
  return mail::canonical_text(std::get<mail::Address>(parsed));
}

std::int64_t add_suppressions(db::Connection& connection, const std::vector<std::string>& addresses,
                              const std::string& topic, const queue::OperationAuthor& author) {
  if (!topic.empty() && connection.run("SELECT FROM mailroom_topics WHERE topic = $1", topic).empty())
    throw Error(ExitCode::usage, fmt::format("there is no topic '{}'", shown_text(topic)),
                "mailroom topic list shows them");
  return change(connection, R"(
WITH added AS (
  INSERT INTO mailroom_suppressions (address, topic, kind, reason, added_by)
  SELECT DISTINCT a, $4::text, 'operator', coalesce(nullif($3, ''), 'no reason given'), $2 FROM unnest($1::text[]) a
  ON CONFLICT (address, topic) DO NOTHING RETURNING 1)
SELECT count(*) FROM added)",
                "suppress", addresses, topic, author);
}

std::int64_t remove_suppressions(db::Connection& connection, const std::vector<std::string>& addresses,
                                 const std::string& topic, const queue::OperationAuthor& author) {
  return change(connection, R"(
WITH removed AS (DELETE FROM mailroom_suppressions WHERE address = ANY ($1::text[]) AND topic = $4::text RETURNING $2::text, $3::text)
SELECT count(*) FROM removed)",
                "unsuppress", addresses, topic, author);
}

}  // namespace mailroom::suppression
