#pragma once

#include <functional>
#include <memory>

#include "replay/rewind.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test {

inline const OperationAuthor rewind_author{.actor = "tester@host", .reason = "test"};

inline std::int64_t carry_out(Connection& connection, const RewindRequest& request) {
  return carry_out_rewind(connection, request, plan_rewind(connection, request), rewind_author,
                          "token_insert");
}

/// A queue with a collector that the test drives, and an operator.
struct RewindRig : DatabaseRig {
  std::unique_ptr<PgQueueSession> session = attach(database);

  Ids drain(int limit = 10) { return test::drain(*session, limit); }

  RewindPlan plan(const RewindRequest& request) { return plan_rewind(*connection, request); }

  std::int64_t carry_out(const RewindRequest& request) { return test::carry_out(*connection, request); }
};

inline RewindRequest to(std::int64_t id) {
  return {.queue = "mailroom", .target = {RewindTarget::Kind::id, id}, .max_replay = 1000};
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
