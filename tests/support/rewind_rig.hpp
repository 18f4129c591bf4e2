#pragma once

#include <functional>
#include <memory>

#include "replay/rewind.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test {

inline const queue::OperationAuthor rewind_author{.actor = "tester@host", .reason = "test"};

inline std::int64_t carry_out(db::Connection& connection, const replay::RewindRequest& request) {
  return replay::carry_out_rewind(connection, request, replay::plan_rewind(connection, request),
                                  rewind_author, "token_insert");
}

/// A queue with a collector that the test drives, and an operator.
struct RewindRig : DatabaseRig {
  std::unique_ptr<claim::PgQueueSession> session = attach(database);

  Ids drain(int limit = 10) { return test::drain(*session, limit); }

  replay::RewindPlan plan(const replay::RewindRequest& request) {
    return replay::plan_rewind(*connection, request);
  }

  std::int64_t carry_out(const replay::RewindRequest& request) {
    return test::carry_out(*connection, request);
  }
};

inline replay::RewindRequest to(std::int64_t id) {
  return {.queue = "mailroom", .target = {replay::RewindTarget::Kind::id, id}, .max_replay = 1000};
}

inline replay::RewindRequest to(replay::RewindTarget::Kind kind, Moment time = {}) {
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
