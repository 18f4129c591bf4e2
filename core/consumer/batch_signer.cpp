#include "consumer/batch_signer.hpp"

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

}  // namespace

BatchCounts BatchSigner::emit(QueueSession& session, const Lease& lease, Sink& sink,
                              const std::function<void()>& when_slow) {
  BatchCounts counts;
  sink.begin(lease);
  session.fetch(lease, [&](const TokenRow& row) {
    if (int* reason = reason_to_skip(row, counts)) {
      ++*reason;
      counts.skipped_ids.push_back(row.id);
    } else {
      sink.add(row, sign_token(hmac_, row.action, *row.secret, row.code));
    }
  });
  counts.emitted = sink.finish(when_slow);
  return counts;
}

int* BatchSigner::reason_to_skip(const TokenRow& row, BatchCounts& counts) {
  switch (row.state) {
    case TokenState::consumed:
      return &counts.consumed;
    case TokenState::expired:
      return &counts.expired;
    case TokenState::wrong_status:
      return &counts.wrong_status;
    case TokenState::due:
      break;
  }
  const char* defect = defect_of(row);
  if (defect == nullptr) return nullptr;
  log_.warn("token skipped", {{"id", row.id}, {"reason", defect}});
  return &counts.invalid;
}

}  // namespace mailroom
