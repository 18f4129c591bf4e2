#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "replay/rewind.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test {

inline const OperationAuthor rewind_author{.actor = "tester@host", .reason = "test"};

/// A queue with a collector that the test drives, and an operator.
struct RewindRig {
  TestDatabase database;
  std::unique_ptr<Connection> connection = database.connect();
  std::unique_ptr<PgQueueSession> session = attach(database);

  /// Claims and acknowledges until no token is left; returns the ids in the order of their emission.
  Ids drain(int limit = 10) {
    Ids all;
    std::optional<Receipt> receipt;
    for (;;) {
      const auto reply = session->claim({.limit = limit, .partial = true, .receipt = receipt});
      receipt.reset();
      if (!reply.lease && !reply.more) return all;
      if (!reply.lease) continue;
      const auto [ids, counts] = fetch_due(*session, *reply.lease);
      all.insert(all.end(), ids.begin(), ids.end());
      receipt = Receipt{*reply.lease, counts};
    }
  }

  RewindPlan plan(const RewindRequest& request) { return plan_rewind(*connection, request); }

  std::int64_t carry_out(const RewindRequest& request) {
    return carry_out_rewind(*connection, request, plan(request), rewind_author, "token_insert");
  }
};

inline RewindRequest to(std::int64_t id) {
  return {.queue = "mailroom", .target = {RewindTarget::Kind::id, id}, .filter = {}, .max_replay = 1000};
}

inline RewindRequest to(RewindTarget::Kind kind, Moment time = {}) {
  auto request = to(0);
  request.target = {.kind = kind, .time = time};
  return request;
}

inline ExitCode refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::done;
}

}  // namespace mailroom::test
