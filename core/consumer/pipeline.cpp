// Keeps a batch open while the next is claimed, but no more batches without a receipt than the sink allows.

#include "consumer/pipeline.hpp"

#include <algorithm>
#include <iterator>

namespace mailroom::consumer {

Pipeline::Pipeline(const crypto::Key& key, std::unique_ptr<Sink> sink, SessionKeeper& sessions,
                   Receipts& receipts, Waker& waker, process::Environment& environment, Log& log,
                   ConsumerObserver& observer)
    : signer_(key, log, environment),
      sink_(std::move(sink)),
      sessions_(sessions),
      receipts_(receipts),
      waker_(waker),
      environment_(environment),
      log_(log),
      observer_(observer),
      emission_log_(log) {
  sink_->attend(*this);
}

void Pipeline::keep_leases() {
  if (sessions_.session_or_null() == nullptr || kept_in_ == sessions_.number()) return;
  auto leases = receipts_.leases();
  for (const auto& open : open_)
    leases.push_back(open.batch.receipt.lease);
  if (!leases.empty()) sessions_.session().keep(leases);
  kept_in_ = sessions_.number();
}

std::optional<std::vector<std::int64_t>> Pipeline::begin(const std::vector<claim::Lease>& leases,
                                                         const std::vector<std::string>& sinks) {
  if (sessions_.session_or_null() == nullptr) return std::nullopt;
  try {
    return sessions_.session().begin(leases, sinks);
  } catch (const Error& error) {
    sessions_.failed(error);
    return std::nullopt;
  }
}

std::optional<std::vector<claim::WithheldToken>> Pipeline::withheld(const std::vector<std::int64_t>& tokens) {
  if (sessions_.session_or_null() == nullptr) return std::nullopt;
  try {
    return sessions_.session().withheld(tokens);
  } catch (const Error& error) {
    sessions_.failed(error);
    return std::nullopt;
  }
}

void Pipeline::keep() {
  sessions_.keep();
  try {
    keep_leases();
  } catch (const Error& error) {
    sessions_.failed(error);
  }
}

void Pipeline::configure(const crypto::Key& key, std::unique_ptr<Sink> sink) {
  finish_all();
  finish_late();
  signer_.configure(key);
  sink_ = std::move(sink);
  sink_->attend(*this);
}

Pipeline::Capacity Pipeline::capacity() const {
  return {.batches = sink_->most_open(), .tokens = sink_->room(), .from = sink_->claims_from()};
}

void Pipeline::deliver(const MadeClaim& claim, const BatchSigner::Rows& rows, bool claims_on) {
  const auto& reply = claim.reply;
  auto batch = signer_.sign(*reply.lease, claim.turn.line_limit, rows, *sink_);
  batch.times.claim = claim.took;
  // Before this batch is written: no more than one is written and not acknowledged.
  try {
    if (capacity().batches == 1) receipts_.acknowledge_all();
  } catch (...) {
    sink_->forget();
    throw;
  }
  const auto trigger = claim.trigger(batch.last_token);
  open_.push_back({.batch = std::move(batch), .size = reply.size, .trigger = trigger});
  const auto most = may_stay_open(claim, claims_on);
  while (open_.size() > most)
    finish_oldest();
}

std::size_t Pipeline::may_stay_open(const MadeClaim& claim, bool claims_on) const {
  if (!claims_on) return 0;
  const auto [batches, tokens, from] = capacity();
  // The last of several goes on while a claim acknowledges the one before.
  if (!claim.reply.more || tokens == 0) return open_.size() > 1 ? 1 : 0;
  return batches - 1;
}

bool Pipeline::clears_for_claim() {
  const bool is_quick = sink_->most_open() > 1 || is_reader_fast_;
  if (!is_quick || !sink_->takes_ahead()) return false;
  finish_all();
  return sink_->claims_from() <= environment_.now();
}

std::optional<std::int64_t> Pipeline::open_batch(const std::string& queue) const {
  for (const auto& open : open_) {
    const auto& lease = open.batch.receipt.lease;
    if (lease.queue == queue) return lease.batch;
  }
  return std::nullopt;
}

void Pipeline::finish_oldest() {
  // While this consumer waits for its reader, the others need notifications.
  const auto when_slow = [&] {
    waker_.hand_over(sessions_.session_or_null());
    environment_.note_wait(process::Awaited::reader);
  };
  observer_.delivers();
  // It stays here until then: the sink has it still if that throws.
  signer_.finish(open_.front().batch, *sink_, when_slow);
  environment_.note_wait(process::Awaited::nothing);
  observer_.turned(environment_.now());
  auto finished = std::move(open_.front());
  open_.pop_front();
  note_finished(finished, receipts_.add(std::move(finished.batch.receipt)));
}

void Pipeline::note_finished(const OpenBatch& open, const claim::Receipt& receipt) {
  const auto& times = open.batch.times;
  is_reader_fast_ = times.write <= times.fetch + times.sign;
  observer_.finished({.receipt = receipt,
                      .size = open.size,
                      .trigger = open.trigger,
                      .times = times,
                      .created = open.batch.created,
                      .actions = open.batch.actions});
  const auto& counts = receipt.counts;
  if (counts.emitted > 0) ++written_;
  log_.debug("batch written",
             {{"batch", receipt.lease.batch}, {"tokens", counts.emitted}, {"skipped", counts.skipped()}});
  const auto now = environment_.now();
  emission_log_.finished(receipt, now);
  emission_log_.write_if_due(now, EmissionLog::Loop::busy);
}

void Pipeline::count_skipped(int tokens, int expired) {
  const auto now = environment_.now();
  emission_log_.skipped(tokens, expired, now);
  emission_log_.write_if_due(now, EmissionLog::Loop::busy);
}

void Pipeline::report_late() {
  std::ranges::move(sink_->take_late(), std::back_inserter(late_));
  // A receipt has the deferrals that these replace.
  const auto is_due = [&](const auto& late) { return !receipts_.holds(late.lease); };
  for (auto next = late_.begin(); (next = std::find_if(next, late_.end(), is_due)) != late_.end();) {
    sessions_.session().report(*next);
    next = late_.erase(next);
  }
}

bool Pipeline::consult(bool heard) {
  sink_->ask();
  if (sessions_.session_or_null() == nullptr) return false;
  sink_->consult(sessions_.session(), heard);
  return true;
}

void Pipeline::leave() {
  if (auto* const session = sessions_.session_or_null()) sink_->leave(*session);
}

bool Pipeline::finish_late() {
  sink_->finish_late();
  std::ranges::move(sink_->take_late(), std::back_inserter(late_));
  return !late_.empty();
}

void Pipeline::finish_all() {
  while (!open_.empty())
    finish_oldest();
}

}  // namespace mailroom::consumer
