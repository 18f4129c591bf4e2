// Finds the tokens that cannot be emitted, times each step of a batch, and fills in its receipt.

#include "consumer/batch_signer.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace mailroom::consumer {
namespace {

/// Why a due token cannot be emitted; null if it can.
const char* defect_of(const claim::TokenRow& row) {
  if (!is_printable(row.email)) return "the email holds a control character or invalid UTF-8";
  if (!is_printable(row.login)) return "the login holds a control character or invalid UTF-8";
  if (!is_printable(row.code)) return "the code holds a control character or invalid UTF-8";
  if (row.action->path.empty()) return nullptr;
  if (!row.secret) return "the secret is not 32 bytes";
  if (row.action->has_code && row.code.size() != crypto::code_size) return "the code is not 5 characters";
  return nullptr;
}

/// Where tokens are counted that are skipped in a state; null for due.
int claim::BatchCounts::*count_of(claim::TokenState state) {
  switch (state) {
    case claim::TokenState::consumed:
      return &claim::BatchCounts::consumed;
    case claim::TokenState::expired:
      return &claim::BatchCounts::expired;
    case claim::TokenState::wrong_status:
      return &claim::BatchCounts::wrong_status;
    case claim::TokenState::due:
      break;
  }
  return nullptr;
}

claim::BatchCounts& counts_of(const queue::Action& action, std::vector<ActionCounts>& actions) {
  const auto found = std::ranges::find(actions, action.name, &ActionCounts::action);
  return found != actions.end() ? found->counts : actions.emplace_back(ActionCounts{action.name}).counts;
}

/// A session that nobody asked for it does not know when tokens were created.
void count_creation(std::int64_t second, std::vector<CreatedTokens>& created) {
  if (second == 0) return;
  if (created.empty() || created.back().second != second) created.push_back({second, 0});
  ++created.back().count;
}

void count_refused(const std::vector<claim::TokenOutcome>& outcomes, claim::BatchCounts& counts) {
  auto& ids = counts.skipped_ids;
  for (const auto& outcome : outcomes) {
    if (outcome.state != fate::Outcome::accepted) ids.push_back(outcome.token);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

SignedBatch BatchSigner::sign(const claim::Lease& lease, int line_limit, const Rows& rows, Sink& sink) {
  SignedBatch batch{.receipt = {lease, {}}};
  const auto began = clock_.now();
  auto fetched = began;
  bool is_open = false;
  const auto open = [&] {
    fetched = clock_.now();
    sink.begin(lease, line_limit);
    is_open = true;
  };
  try {
    rows([&](const claim::TokenRow& row) {
      if (!is_open) open();
      batch.last_token = row.id;
      ++batch.tokens;
      add(row, batch, sink);
    });
    if (!is_open) open();
    sink.complete();
  } catch (...) {
    if (is_open) sink.forget();
    throw;
  }
  batch.signed_at = clock_.now();
  batch.receipt.signed_at = batch.signed_at;
  batch.times.fetch = fetched - began;
  batch.times.sign = batch.signed_at - fetched;
  return batch;
}

void BatchSigner::finish(SignedBatch& batch, Sink& sink, const std::function<void()>& when_slow) {
  auto outcome = sink.finish(when_slow);
  const auto finished = clock_.now();
  batch.times.write = finished - batch.signed_at;
  auto& receipt = batch.receipt;
  receipt.written_at = finished;
  receipt.counts.emitted = outcome.emitted;
  if (outcome.outcomes) {
    // The server takes a token without an outcome for a deleted one.
    if (outcome.outcomes->size() != static_cast<std::size_t>(batch.tokens))
      throw Error(ExitCode::failed,
                  fmt::format("the sink has the outcomes of {} tokens, and the batch has {}",
                              outcome.outcomes->size(), batch.tokens));
    count_refused(*outcome.outcomes, receipt.counts);
  }
  receipt.outcomes = std::move(outcome.outcomes);
}

void BatchSigner::add(const claim::TokenRow& row, SignedBatch& batch, Sink& sink) {
  auto& counts = batch.receipt.counts;
  auto& counts_of_action = counts_of(*row.action, batch.actions);
  auto count = count_of(row.state);
  const char* defect = count == nullptr ? defect_of(row) : nullptr;
  if (defect != nullptr) {
    log_.warn("token skipped", {{"id", row.id}, {"reason", defect}});
    count = &claim::BatchCounts::invalid;
  }
  if (count == nullptr) {
    ++counts_of_action.emitted;
    count_creation(row.created_at, batch.created);
    if (row.action->path.empty()) return sink.add(row, {});
    const auto token = queue::sign_token(hmac_, *row.action, *row.secret, row.code);
    return sink.add(row, {token.data(), token.size()});
  }
  ++(counts.*count);
  ++(counts_of_action.*count);
  counts.skipped_ids.push_back(row.id);
  sink.skip(row, defect);
}

}  // namespace mailroom::consumer
