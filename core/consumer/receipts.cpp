// A claim takes one receipt of its queue. All others are acknowledged by a statement of their own.

#include "consumer/receipts.hpp"

namespace mailroom::consumer {
namespace {

constexpr Milliseconds farewell{5000};  ///< how long a consumer that leaves tries to acknowledge

}  // namespace

std::vector<claim::Lease> Receipts::leases() const {
  std::vector<claim::Lease> leases;
  for (const auto& receipt : receipts_)
    leases.push_back(receipt.lease);
  return leases;
}

bool Receipts::fit_claim(const std::string& queue) const {
  return receipts_.empty() || (receipts_.size() == 1 && receipts_.front().lease.queue == queue);
}

void Receipts::fit_into_claim(const std::string& queue) {
  // Another queue's batch is acknowledged under the lock of its own queue.
  while (!fit_claim(queue))
    acknowledge_oldest();
}

std::optional<claim::Receipt> Receipts::oldest() const {
  if (receipts_.empty()) return std::nullopt;
  return receipts_.front();
}

void Receipts::acknowledged_by(const claim::ClaimRequest& request) {
  if (!request.receipt) return;
  std::erase_if(receipts_, [&](const auto& receipt) { return receipt.lease == request.receipt->lease; });
}

void Receipts::acknowledge(const claim::ClaimRequest& request) {
  sessions_.claim(request);
  acknowledged_by(request);
}

void Receipts::acknowledge_oldest() {
  const auto& oldest = receipts_.front();
  acknowledge({.queue = oldest.lease.queue, .publish_cursor = true, .receipt = oldest});
}

void Receipts::acknowledge_all() {
  while (!receipts_.empty())
    acknowledge_oldest();
}

void Receipts::acknowledge_to_leave() {
  const auto give_up = environment_.now() + farewell;
  if (!receipts_.empty()) environment_.note_wait(process::Awaited::database);
  while (!receipts_.empty()) {
    try {
      sessions_.connect_to_leave();
      acknowledge_oldest();
    } catch (const Error& error) {
      const auto fix = db::retry_for(error);
      if (fix == db::Retry::new_session) sessions_.drop();
      if (fix == db::Retry::same_session && environment_.stop_requested()) {
        acknowledge_without_lock();
        continue;
      }
      if (fix == db::Retry::none || environment_.now() >= give_up) {
        log_.error("the last batch is written but not acknowledged: it will be emitted again");
        throw;
      }
      sessions_.pause();
    }
  }
  environment_.note_wait(process::Awaited::nothing);
}

void Receipts::acknowledge_without_lock() {
  try {
    const auto& oldest = receipts_.front();
    acknowledge({.queue = oldest.lease.queue, .without_lock = true, .receipt = oldest});
  } catch (const Error& error) {
    log_.error("the last batch is written but not acknowledged: it will be emitted again");
    if (db::retry_for(error) == db::Retry::new_session) throw;
    throw Error(ExitCode::locked, std::string("the last batch cannot be acknowledged: ") + error.what(),
                "run mailroom status to see which session holds the queue's lock");
  }
}

}  // namespace mailroom::consumer
