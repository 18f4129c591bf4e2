#include "consumer/batch_signer.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mailroom {
namespace {

/// Why a due token cannot be emitted; null if it can.
const char* defect_of(const TokenRow& row) {
  if (!is_printable(row.email)) return "the email holds a control character or invalid UTF-8";
  if (!is_printable(row.login)) return "the login holds a control character or invalid UTF-8";
  if (!is_printable(row.code)) return "the code holds a control character or invalid UTF-8";
  if (!row.secret) return "the secret is not 32 bytes";
  if (row.action == Action::password_recovery && row.code.size() != code_size)
    return "the code is not 5 characters";
  return nullptr;
}

/// The count of tokens that are skipped in a state; null for due.
int* count_of(TokenState state, BatchCounts& counts) {
  switch (state) {
    case TokenState::consumed:
      return &counts.consumed;
    case TokenState::expired:
      return &counts.expired;
    case TokenState::wrong_status:
      return &counts.wrong_status;
    case TokenState::due:
      break;
  }
  return nullptr;
}

void count_refused(const std::vector<TokenOutcome>& outcomes, BatchCounts& counts) {
  auto& ids = counts.skipped_ids;
  for (const auto& outcome : outcomes) {
    if (outcome.state != DeliveryState::accepted) ids.push_back(outcome.token);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

Receipt BatchSigner::emit(QueueSession& session, const Lease& lease, int line_limit, Sink& sink,
                          const std::function<void()>& when_slow,
                          const std::function<void()>& before_finish) {
  Receipt receipt{lease, {}};
  created_.clear();
  last_token_ = 0;
  const auto began = clock_.now();
  auto fetched = began;
  sink.begin(lease, line_limit);
  session.fetch(lease, [&](const TokenRow& row) {
    if (last_token_ == 0) fetched = clock_.now();
    last_token_ = row.id;
    add(row, receipt.counts, sink);
  });
  const auto added = clock_.now();
  if (last_token_ == 0) fetched = added;
  if (before_finish) before_finish();
  auto outcome = sink.finish(when_slow);
  const auto finished = clock_.now();
  times_ = {.claim = {}, .fetch = fetched - began, .sign = added - fetched, .write = finished - added};
  receipt.signed_at = added;
  receipt.written_at = finished;
  receipt.counts.emitted = outcome.emitted;
  if (outcome.outcomes) count_refused(*outcome.outcomes, receipt.counts);
  receipt.outcomes = std::move(outcome.outcomes);
  return receipt;
}

/// A session that nobody asked for it does not know when tokens were created.
void BatchSigner::count_creation(std::int64_t second) {
  if (second == 0) return;
  if (created_.empty() || created_.back().second != second) created_.push_back({second, 0});
  ++created_.back().count;
}

void BatchSigner::add(const TokenRow& row, BatchCounts& counts, Sink& sink) {
  int* count = count_of(row.state, counts);
  const char* defect = count == nullptr ? defect_of(row) : nullptr;
  if (defect != nullptr) {
    log_.warn("token skipped", {{"id", row.id}, {"reason", defect}});
    count = &counts.invalid;
  }
  if (count == nullptr) {
    count_creation(row.created_at);
    return sink.add(row, sign_token(hmac_, row.action, *row.secret, row.code));
  }
  ++*count;
  counts.skipped_ids.push_back(row.id);
  sink.skip(row, defect);
}

}  // namespace mailroom
