#include "bench/grown_database.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "bench/loading.hpp"

namespace mailroom::bench {
namespace {

constexpr std::int64_t day = 24LL * 3600;

constexpr const char* insert_grown_accounts =
    "INSERT INTO accounts (id, email, login, status) "
    "SELECT g, 'user' || g || '@bench.example', 'user' || g, 'provisioned' FROM generate_series(1, $1::bigint) g";

/// Tokens 1 to $1, created at the same pace from $3 to $4 (seconds since 1970) for accounts 1 to $2. Every
/// second one was consumed after a minute.
constexpr const char* insert_emitted_tokens =
    "INSERT INTO tokens (id, account, action, secret, code, created_at, expires_at, consumed_at) "
    "SELECT g, 1 + (g - 1) % $2::bigint, 'activation', sha256(int8send(g)), lpad((g * 7919 % 100000)::text, 5, '0'), "
    "c.at, c.at + 900, CASE WHEN g % 2 = 0 THEN c.at + 60 END "
    "FROM generate_series(1, $1::bigint) g, "
    "LATERAL (SELECT $3::bigint + g * ($4::bigint - $3::bigint) / $1::bigint AS at) c";

/// Tokens $1 to $2, which are due for a month from $4 on.
constexpr const char* insert_due_tokens =
    "INSERT INTO tokens (id, account, action, secret, code, created_at, expires_at) "
    "SELECT g, 1 + (g - 1) % $3::bigint, 'activation', sha256(int8send(g)), lpad((g * 7919 % 100000)::text, 5, '0'), "
    "$4::bigint, $4::bigint + 2592000 FROM generate_series($1::bigint, $2::bigint) g";

/// The records that a collector at limit 100 leaves.
constexpr const char* insert_batches =
    "INSERT INTO mailroom_batches (queue, ids, collector, claimed_by, claimed_at, signed_at, written_at, emitted_at, "
    "emitted, cursor, open_from, gap_ids) "
    "SELECT 'mailroom', int8multirange(int8range(b.last - 99, b.last, '[]')), 1, 'mailroom collect@bench', "
    "c.at, c.at, c.at, c.at, 100, b.last, b.last / 100, '{}' "
    "FROM generate_series(100, $1::bigint, 100) b (last), LATERAL ("
    "SELECT to_timestamp(1 + $2::bigint + b.last * ($3::bigint - $2::bigint) / $1::bigint) AS at) c "
    "ORDER BY b.last";

void load(Stage& stage, const GrownDatabase& grown) {
  stage.create_database(grown.name, "template0");
  Process(stage.mailroom(grown.name, {"migrate"})).wait();
  const auto connection = stage.connect(grown.name);
  without_triggers(*connection);
  connection->run(insert_grown_accounts, grown.accounts);
  const auto now = in_seconds(connection->server_time());
  const auto begin = now - grown_days * day;
  with_indexes_dropped(*connection, [&] {
    connection->run(insert_emitted_tokens, grown.emitted, grown.accounts, begin, now - 1);
    connection->run(insert_due_tokens, grown.emitted + 1, grown.emitted + grown.due, grown.accounts, now);
  });
  connection->run(insert_batches, grown.emitted, begin, now - 1);
  finish_loading(*connection);
}

}  // namespace

GrownDatabase grown_database(Stage& stage, int millions) {
  const auto emitted = stage.scaled(millions * 1'000'000LL) / 1000 * 1000;
  const GrownDatabase grown{.name = fmt::format("grown_{}", millions),
                            .emitted = std::max<std::int64_t>(emitted, 10'000),
                            .due = stage.scaled(200'000, 10'000),
                            .accounts = std::max<std::int64_t>(emitted, 10'000) * 3 / 10};
  stage.once(grown.name, [&] { load(stage, grown); });
  return grown;
}

}  // namespace mailroom::bench
