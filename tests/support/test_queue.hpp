#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "claim/pg_queue_session.hpp"
#include "schema/bookkeeping.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

using Ids = std::vector<std::int64_t>;

/// A session of a collector, for the test to drive step by step.
inline std::unique_ptr<claim::PgQueueSession> attach(const TestDatabase& database,
                                                     const std::string& queue = "mailroom") {
  return std::make_unique<claim::PgQueueSession>(claim::PgQueueSession::Setup{
      database.conninfo(), {queue}, "token_insert", schema::require_current_schema});
}

/// The same, for a consumer that records outcomes.
inline std::unique_ptr<claim::PgQueueSession> attach_sender(const TestDatabase& database,
                                                            const std::string& queue = "mailroom") {
  claim::PgQueueSession::Setup setup{
      database.conninfo(), {queue}, "token_insert", schema::require_current_schema};
  setup.detail = {.delivers = true, .reads_newer = true};
  return std::make_unique<claim::PgQueueSession>(setup);
}

/// Gives a queue a rate of its own: a token every `gap` seconds.
inline void set_rate(db::Connection& connection, const std::string& queue, double gap, int burst) {
  connection.run(R"(
SELECT mailroom_set_queue($1, jsonb_build_object('rate', jsonb_build_object(
  'tokens', 1, 'milliseconds', $2::bigint, 'burst', $3::int)), 'token_insert'))",
                 queue, std::llround(gap * 1000), burst);
}

/// Deferred tokens are due.
inline void due_now(db::Connection& connection) {
  connection.run("UPDATE mailroom_deliveries SET not_before = '-infinity' WHERE not_before IS NOT NULL");
}

/// The tokens of a batch that a collector would emit, and its counts for the acknowledgement.
struct Fetched {
  Ids ids;
  claim::BatchCounts counts;
};

inline Fetched fetch_due(claim::QueueSession& session, const claim::Lease& lease) {
  Fetched fetched;
  auto& counts = fetched.counts;
  session.fetch(lease, [&](const claim::TokenRow& row) {
    if (row.state == claim::TokenState::due) {
      fetched.ids.push_back(row.id);
      ++counts.emitted;
      return;
    }
    ++(row.state == claim::TokenState::expired    ? counts.expired
       : row.state == claim::TokenState::consumed ? counts.consumed
                                                  : counts.wrong_status);
    counts.skipped_ids.push_back(row.id);
  });
  return fetched;
}

/// Claims and acknowledges until no token is left; returns the ids in the order of their emission.
inline Ids drain(claim::QueueSession& session, int limit = 10) {
  Ids all;
  std::optional<claim::Receipt> receipt;
  for (;;) {
    const auto reply = session.claim({.limit = limit, .partial = true, .receipt = receipt});
    receipt.reset();
    if (!reply.lease && !reply.more) return all;
    if (!reply.lease) continue;
    const auto [ids, counts] = fetch_due(session, *reply.lease);
    all.insert(all.end(), ids.begin(), ids.end());
    receipt = claim::Receipt{*reply.lease, counts};
  }
}

/// Emits all tokens anew in batches of `limit`, as lines, or with outcomes if it `delivers`; what `text_of`
/// says of each row.
template <typename TextOf>
std::vector<std::string> rows_at(const TestDatabase& database, db::Connection& connection, int limit,
                                 const TextOf& text_of, bool delivers = false) {
  connection.run("TRUNCATE mailroom_batches, mailroom_gaps");
  connection.run("UPDATE jobs SET last_seq = 0");
  const auto session = delivers ? attach_sender(database) : attach(database);
  std::vector<std::string> rows;
  claim::ClaimRequest request{.limit = limit, .partial = true};
  for (auto reply = session->claim(request); reply.lease; reply = session->claim(request)) {
    const auto before = rows.size();
    std::vector<claim::TokenOutcome> outcomes;
    session->fetch(*reply.lease, [&](const claim::TokenRow& row) {
      rows.push_back(text_of(row));
      outcomes.push_back({.token = row.id});
    });
    request.receipt = claim::Receipt{*reply.lease, {.emitted = static_cast<int>(rows.size() - before)}};
    if (delivers) request.receipt->outcomes = std::move(outcomes);
  }
  return rows;
}

inline Ids fetch_ids(claim::QueueSession& session, const claim::Lease& lease) {
  return fetch_due(session, lease).ids;
}

}  // namespace mailroom::test
