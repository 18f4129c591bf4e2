// How a collector stops: acknowledges the last batch, for some seconds and even without the queue's lock.

#include <fmt/format.h>

#include "base/text.hpp"
#include "consumer/collector.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds farewell{5000};  ///< how long to try to acknowledge the last batch

std::string waiting_text(std::optional<std::int64_t> tokens) {
  const auto count = tokens.value_or(0);
  if (!tokens) return "tokens wait";
  return count == 1 ? "1 token waits" : counted(count, "token") + " wait";
}

}  // namespace

void Collector::acknowledge_last() {
  const auto give_up = environment_.now() + farewell;
  if (!receipts_.empty()) environment_.note_wait(Awaited::database);
  while (!receipts_.empty()) {
    try {
      if (!session_) session_ = setup_.connect();
      acknowledge(receipts_.front());
    } catch (const Error& error) {
      const auto fix = retry_for(error);
      if (fix == Retry::new_session) drop_session();
      if (fix == Retry::same_session && environment_.stop_requested()) {
        acknowledge_without_lock();
        continue;
      }
      if (fix == Retry::none || environment_.now() >= give_up) {
        log_.error("the last batch is written but not acknowledged: it will be emitted again");
        throw;
      }
      environment_.pause_for(backoff_.next());
    }
  }
  environment_.note_wait(Awaited::nothing);
}

void Collector::acknowledge_without_lock() {
  try {
    const auto& receipt = receipts_.front();
    report(claim({.queue = receipt.lease.queue, .without_lock = true, .receipt = receipt}));
  } catch (const Error& error) {
    log_.error("the last batch is written but not acknowledged: it will be emitted again");
    if (retry_for(error) == Retry::new_session) throw;
    throw Error(ExitCode::locked, std::string("the last batch cannot be acknowledged: ") + error.what(),
                "run mailroom status to see which session holds the queue's lock");
  }
}

void Collector::acknowledge_before_leaving() {
  try {
    finish_open();
    acknowledge_last();
  } catch (const Error& error) {
    // The caller reports the error that ended the run; this error is a consequence of it.
    log_.debug("acknowledgement failed", {{"reason", error.what()}});
  }
}

void Collector::leave_tokens() const {
  throw Error(ExitCode::database,
              fmt::format("{}; {} in the queue", sink_->unavailability(),
                          setup_.count_waiting ? waiting_text(setup_.count_waiting()) : "tokens wait"),
              "mailroom doctor checks it; run the command again later, or without --once to wait");
}

}  // namespace mailroom
