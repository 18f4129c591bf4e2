// Compares what a claim reads with a list in memory.

#include <fmt/format.h>
#include <map>
#include <random>

#include "selection/id_range.hpp"
#include "support/catch.hpp"
#include "support/old_tokens.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::window_test {
namespace {

enum class Kind { due, expired, consumed };

/// Tokens by id: runs of one kind or of mixed kinds, with some gaps.
std::map<std::int64_t, Kind> make_tokens(std::mt19937& random) {
  std::map<std::int64_t, Kind> tokens;
  std::int64_t id = 1;
  while (tokens.size() < 400) {
    const auto length = 1 + random() % 60;
    const auto kind = random() % 4;
    for (std::size_t i = 0; i < length; ++i)
      tokens[id++] = static_cast<Kind>(kind < 3 ? kind : random() % 3);
    id += random() % 3 == 0 ? 1 + random() % 5 : 0;
  }
  return tokens;
}

std::vector<selection::IdRange> ranges_of(std::string_view multirange) {
  return selection::parse_id_ranges(multirange);
}

void put(db::Connection& connection, const std::map<std::int64_t, Kind>& tokens) {
  connection.run("TRUNCATE tokens");
  add_old_tokens(connection, static_cast<int>(tokens.size()));
  std::string rows;
  for (const auto& [id, kind] : tokens)
    rows += fmt::format("{}({}, {})", rows.empty() ? "" : ", ", id, static_cast<int>(kind));
  connection.run(
      "UPDATE tokens t SET id = -w.id, expires_at = CASE WHEN w.kind = 1 THEN 1700000900 ELSE 4000000000 "
      "END, "
      "consumed_at = CASE WHEN w.kind = 2 THEN 1700000100 END "
      "FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM tokens) o "
      "JOIN (SELECT *, row_number() OVER (ORDER BY id) AS place FROM (VALUES " +
      rows + ") v(id, kind)) w USING (place) WHERE t.id = o.id");
  connection.run("UPDATE tokens SET id = -id");
}

}  // namespace

TEST_CASE("a window holds all tokens up to its end, and ends at the limit or at the last token") {
  const auto seed = GENERATE(range(1U, 13U));
  CAPTURE(seed);
  std::mt19937 random(seed);
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  const auto tokens = make_tokens(random);
  put(*connection, tokens);
  const auto newest = tokens.rbegin()->first;

  for (int i = 0; i < 40; ++i) {
    const auto after = static_cast<std::int64_t>(random()) % newest;
    const auto top = after + static_cast<std::int64_t>(random()) % (newest + 3 - after);
    const int limit = i % 4 == 0 ? 1 : 1 + static_cast<int>(random() % 150);
    const auto row = connection->run("SELECT * FROM mailroom_window($1, $2, $3, NULL)", after, top, limit)[0];
    const auto last = row.number("last");
    CAPTURE(after, top, limit, last);

    Ids seen;
    Ids ids;
    int expired = 0;
    int consumed = 0;
    bool is_end = true;
    for (auto token = tokens.upper_bound(after); token != tokens.end() && token->first <= top; ++token) {
      if (token->first > last) {
        is_end = false;
        break;
      }
      seen.push_back(token->first);
      if (token->second == Kind::due) ids.push_back(token->first);
      expired += token->second == Kind::expired ? 1 : 0;
      consumed += token->second == Kind::consumed ? 1 : 0;
    }
    CHECK(ranges_of(row.view("seen")) == selection::to_id_ranges(seen));
    CHECK(ranges_of(row.view("ids")) == selection::to_id_ranges(ids));
    CHECK(row.number<int>("due") == static_cast<int>(ids.size()));
    CHECK(row.number<int>("expired") == expired);
    CHECK(row.number<int>("consumed") == consumed);
    CHECK(row.number<int>("rows_read") == static_cast<int>(seen.size()));
    CHECK(last == (seen.empty() ? after : seen.back()));
    CHECK_FALSE(row.flag("capped"));
    CHECK(static_cast<int>(ids.size()) <= limit);
    CHECK((is_end || static_cast<int>(ids.size()) == limit));
  }
}

TEST_CASE("a window with few due tokens reads at most ten thousand tokens") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  add_old_tokens(*connection, 12'000);
  const auto limit = GENERATE(1, 10, 1000, 10'000);
  CAPTURE(limit);
  const auto row = connection->run("SELECT * FROM mailroom_window(1, 20000, $1, NULL)", limit)[0];
  CHECK(row.number<int>("rows_read") == 10'000);
  CHECK(row.number<int>("expired") == 10'000);
  CHECK(row.text("seen") == "{[2,10002)}");
  CHECK(row.text("ids") == "{}");
  CHECK(row.flag("capped"));
}

}  // namespace mailroom::test::window_test
