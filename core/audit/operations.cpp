#include "audit/operations.hpp"

#include <charconv>
#include <fmt/format.h>

namespace mailroom {
namespace {

/// SQL for the ids of $1 (an int8multirange) that an operation replayed or moved the cursor over.
constexpr const char* touched = "$1::int8multirange * mailroom_operation_ids(kind, details)";

std::string query(const std::string& condition) {
  return fmt::format(R"(
SELECT id, floor(extract(epoch FROM at) * 1000000)::bigint, kind, actor, db_user,
  coalesce(reason, ''), coalesce(queue, ''), account, details::text, ({})::text,
  ARRAY(SELECT c->>'batch' FROM jsonb_array_elements(
    CASE jsonb_typeof(details->'cut') WHEN 'array' THEN details->'cut' ELSE '[]' END) c
    WHERE c->>'batch' ~ '^[0-9]{{1,18}}$')::text,
  kind = 'rewind' AND CASE WHEN jsonb_typeof(details->'cursor_after') = 'number'
                             AND jsonb_typeof(details->'cursor_before') = 'number'
    THEN (details->'cursor_after')::numeric > (details->'cursor_before')::numeric END
FROM mailroom_operations
WHERE {})",
                     touched, condition);
}

/// PostgreSQL's text of an array of numbers: `{7,9}`.
std::vector<std::int64_t> read_numbers(std::string_view array) {
  std::vector<std::int64_t> numbers;
  while (array.size() > 1) {
    array.remove_prefix(1);
    std::int64_t number = 0;
    const auto [rest, failure] = std::from_chars(array.data(), array.data() + array.size(), number);
    if (failure != std::errc()) break;
    numbers.push_back(number);
    array.remove_prefix(static_cast<std::size_t>(rest - array.data()));
  }
  return numbers;
}

std::vector<Operation> read(const pqxx::result& rows) {
  std::vector<Operation> operations;
  for (const auto& row : rows) {
    Operation operation{.id = row[0].as<std::int64_t>(),
                        .at = row[1].as<std::int64_t>(),
                        .kind = row[2].c_str(),
                        .actor = row[3].c_str(),
                        .db_user = row[4].c_str(),
                        .reason = row[5].c_str(),
                        .queue = row[6].c_str(),
                        .details = row[8].c_str(),
                        .tokens = parse_id_ranges(row[9].c_str()),
                        .cut_batches = read_numbers(row[10].c_str()),
                        .is_forward = !row[11].is_null() && row[11].as<bool>()};
    if (!row[7].is_null()) operation.account = row[7].as<std::int64_t>();
    operations.push_back(std::move(operation));
  }
  return operations;
}

std::string text_of(const std::vector<IdRange>& ranges) {
  std::string text = "{";
  for (const auto& range : ranges)
    text += fmt::format("{}[{},{})", text.size() > 1 ? "," : "", range.first, range.end);
  return text + "}";
}

}  // namespace

std::vector<Operation> operations_on_account(pqxx::transaction_base& transaction, std::int64_t account) {
  return read(Connection::execute(transaction, query("account = $2 ORDER BY at, id"), text_of({}), account));
}

std::vector<Operation> operations_on_tokens(pqxx::transaction_base& transaction,
                                            const std::vector<IdRange>& tokens, std::int64_t since) {
  // created_at is the start of the transaction that created the token, in whole seconds.
  return read(Connection::execute(transaction,
                                  query(fmt::format(R"(
  kind IN ('rewind', 'replay') AND at >= to_timestamp($2::bigint) - interval '1 s'
  AND (NOT isempty({}) OR details->'cut' <> '[]')
ORDER BY at, id)",
                                                    touched)),
                                  text_of(tokens), since));
}

std::vector<Operation> list_operations(pqxx::transaction_base& transaction, std::int64_t since,
                                       std::int64_t until, std::int64_t limit) {
  return read(Connection::execute(transaction, query(R"(
  at >= to_timestamp($2::bigint) AND at < to_timestamp($3::bigint)
ORDER BY at DESC, id DESC
LIMIT $4)"),
                                  text_of({}), since, until, limit));
}

std::int64_t count_operations(pqxx::transaction_base& transaction, std::int64_t since, std::int64_t until) {
  return Connection::execute(transaction, R"(
SELECT count(*) FROM mailroom_operations
WHERE at >= to_timestamp($1::bigint) AND at < to_timestamp($2::bigint))",
                             since, until)[0][0]
      .as<std::int64_t>();
}

}  // namespace mailroom
