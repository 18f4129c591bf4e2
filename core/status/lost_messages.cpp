// mailroom_lost_messages() finds them; the tokens are made by the function that the trigger calls.

#include "status/lost_messages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.hpp"
#include "db/search_path.hpp"
#include "db/values.hpp"

namespace mailroom {
namespace {

constexpr const char* lost_sql = R"(
SELECT is_fit, count(*), count(*) FILTER (WHERE is_later),
  array_to_string((array_agg(message ORDER BY message DESC))[1:10], ' ')
FROM mailroom_lost_messages(to_timestamp($1::bigint), to_timestamp(least($2::bigint, 253402300799))) GROUP BY is_fit)";

std::vector<std::int64_t> ids_in(const std::string& text) {
  std::vector<std::int64_t> ids;
  for (const auto part : split(text, ' '))
    ids.push_back(parse_number<std::int64_t>(part).value_or(0));
  return ids;
}

}  // namespace

LostMessages read_lost_messages(pqxx::transaction_base& transaction, Moment since, Moment until) {
  const auto allowed = Connection::execute(transaction, R"(
SELECT has_any_column_privilege('mailroom_messages', 'SELECT') AND has_table_privilege('mailroom_schedule', 'SELECT'))");
  if (!allowed[0][0].as<bool>()) return {.is_known = false};
  LostMessages lost;
  for (const auto& row : Connection::execute(transaction, lost_sql, in_seconds(since), in_seconds(until))) {
    const bool is_fit = row[0].as<bool>();
    (is_fit ? lost.messages : lost.unfit) = row[1].as<std::int64_t>();
    if (is_fit) lost.later = row[2].as<std::int64_t>();
    (is_fit ? lost.newest : lost.newest_unfit) = ids_in(row[3].c_str());
  }
  return lost;
}

std::vector<Fix> issue_lost_messages(const LostMessages& lost, const std::string& schema) {
  constexpr const char* of_last_day =
      "FROM @.mailroom_lost_messages(now() - interval '1 day', now()) WHERE is_fit";
  std::vector<Fix> all;
  const auto add = [&](const std::string& statement) {
    all.emplace_back(FixKind::issue_tokens, in_schema(statement, schema));
  };
  if (lost.later > 0) {
    add(
        fmt::format("INSERT INTO @.mailroom_schedule (send_after, message) SELECT m.send_after, m.id FROM "
                    "@.mailroom_messages m WHERE m.id IN (SELECT message {} AND is_later);",
                    of_last_day));
  }
  if (lost.messages > lost.later)
    add(fmt::format("SELECT @.mailroom_make_tokens(ARRAY(SELECT message {} AND NOT is_later));",
                    of_last_day));
  return all;
}

std::string messages_text(const std::vector<std::int64_t>& ids, std::int64_t total) {
  const auto others = total - static_cast<std::int64_t>(ids.size());
  auto text = fmt::format("message{} {}", total == 1 ? "" : "s", fmt::join(ids, ", "));
  if (others > 0) text += fmt::format(" and {}", counted(others, "other"));
  return text;
}

}  // namespace mailroom
