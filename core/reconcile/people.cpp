// Reads accounts and last answers of judged tokens, a chunk at a time.

#include "reconcile/people.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "db/values.hpp"

namespace mailroom::reconcile {
namespace {

constexpr std::size_t people_at_once = 10'000;

/// The words of the server that said what came back of a mail, in place of those of the relay that accepted
/// it.
constexpr const char* answers_sql = R"(
LEFT JOIN LATERAL (
  SELECT b.at, b.code, concat_ws(' ', b.status, b.reply) AS reply FROM mailroom_bounces b
  WHERE n.is_reported AND b.queue = $2 AND b.token = t.id AND mailroom_reported_outcome(b.kind) IS NOT NULL
  ORDER BY mailroom_report_rank(b.kind) DESC, b.id DESC LIMIT 1) r ON true)";
constexpr const char* no_answers_sql =
    "CROSS JOIN (SELECT NULL::timestamptz AS at, NULL::integer AS code, NULL AS reply) r";

/// An outcome that was recorded before the token was created was that of another token with its id. $1 the
/// ids, $2 the queue, $3 the selection, $4 whether something came back of it.
std::string people_sql(const selection::Selection& selection, bool any_reported) {
  return fmt::format(R"(
SELECT n.place, t.account, a.login, coalesce(d.address, {}) AS address, t.action, t.created_at,
  {} AS at_us, {} AS not_before_us, CASE WHEN r.at IS NULL THEN d.code ELSE r.code END AS code,
  CASE WHEN r.at IS NULL THEN d.reply ELSE r.reply END AS reply, t.message,
  (SELECT m.reference FROM mailroom_messages m WHERE m.id = t.message) AS reference,
  coalesce(d.unknowns, 0) AS unknowns, d.accepted_at IS NOT NULL AS was_accepted
FROM unnest($1::bigint[], $4::boolean[]) WITH ORDINALITY n (id, is_reported, place)
JOIN tokens t ON t.id = n.id
LEFT JOIN accounts a ON a.id = t.account
LEFT JOIN mailroom_deliveries d
  ON d.queue = $2 AND d.token = t.id AND floor(extract(epoch FROM d.last_at)) >= t.created_at
{}
WHERE true{}
ORDER BY n.place)",
                     db::address_sql, db::microseconds_sql("coalesce(r.at, d.answered_at, d.last_at)"),
                     db::microseconds_sql("d.not_before"), any_reported ? answers_sql : no_answers_sql,
                     selection.condition("$3", "$2"));
}

bool is_reported(const JudgedToken& token) {
  return std::ranges::find(fate::reported_outcomes, token.outcome) != fate::reported_outcomes.end();
}

/// `once`, `2 times`.
std::string how_often(int times) {
  return times == 1 ? "once" : fmt::format("{} times", times);
}

std::string reason_of(const db::Row& row, const JudgedToken& token, const TokenOfPerson& person) {
  const auto not_before = row.optional_moment<std::chrono::microseconds>("not_before_us");
  if (!token.explanation.empty()) return token.explanation;
  if (person.perhaps > 0 && row.flag("was_accepted"))
    return fmt::format("accepted once for certain, and perhaps {} more", how_often(person.perhaps));
  if (person.perhaps > 0) return fmt::format("perhaps accepted {}", how_often(person.perhaps));
  if (token.outcome == fate::Outcome::deferred && not_before)
    return "the next attempt at " + moment_text(*not_before);
  return person.code == 0 ? person.reply : "";
}

TokenOfPerson read_person(const db::Row& row, const std::string& queue, const JudgedToken& token) {
  TokenOfPerson person{.queue = queue,
                       .token = token.id,
                       .account = row.optional<std::int64_t>("account"),
                       .login = row.text("login"),
                       .address = row.text("address"),
                       .action = row.text("action"),
                       .created_at = row.moment<std::chrono::seconds>("created_at"),
                       .outcome = token.outcome,
                       .at = row.optional_moment<std::chrono::microseconds>("at_us"),
                       .code = row.optional<int>("code").value_or(0),
                       .reply = row.text("reply"),
                       .message = row.optional<std::int64_t>("message"),
                       .reference = row.text("reference"),
                       .perhaps = row.optional<int>("unknowns").value_or(0)};
  if (!person.at && token.at != 0) person.at = bounded_moment(std::chrono::microseconds(token.at));
  person.reason = reason_of(row, token, person);
  return person;
}

}  // namespace

void PeopleReader::add(JudgedToken token) {
  tokens_.push_back(std::move(token));
  if (tokens_.size() >= people_at_once) finish();
}

void PeopleReader::finish() {
  if (tokens_.empty()) return;
  std::vector<std::int64_t> ids;
  std::vector<std::string> reported;
  for (const auto& token : tokens_) {
    ids.push_back(token.id);
    reported.push_back(is_reported(token) ? "t" : "f");
  }
  std::vector<TokenOfPerson> people;
  const auto rows =
      db::Connection::execute(transaction_, people_sql(selection_, std::ranges::any_of(tokens_, is_reported)),
                              db::array_text(ids), queue_, selection_.parameter(), db::array_text(reported));
  for (const auto& row : rows)
    people.push_back(read_person(row, queue_, tokens_.at(row.number<std::size_t>("place") - 1)));
  tokens_.clear();
  if (!people.empty()) on_people_(people);
}

}  // namespace mailroom::reconcile
