#include "consumer/batch_writer.hpp"

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

BatchWriter::BatchWriter(const Key& key, std::unique_ptr<Encoder> encoder, int line_limit, Output& output,
                         Log& log)
    : hmac_(key), encoder_(std::move(encoder)), line_limit_(line_limit), output_(output), log_(log) {}

void BatchWriter::configure(const Key& key, std::unique_ptr<Encoder> encoder, int line_limit) {
  hmac_ = Hmac(key);
  encoder_ = std::move(encoder);
  line_limit_ = line_limit;
}

BatchCounts BatchWriter::write(QueueSession& session, const Lease& lease,
                               const std::function<void()>& when_slow) {
  BatchCounts counts;
  lease_ = lease;
  in_line_ = 0;
  full_lines_.clear();
  encoder_->begin(lease);
  session.fetch(lease, [&](const TokenRow& row) { take(row, counts); });
  for (const auto& line : full_lines_)
    output_.write(line, when_slow);
  if (in_line_ > 0) output_.write(encoder_->finish(), when_slow);
  return counts;
}

void BatchWriter::take(const TokenRow& row, BatchCounts& counts) {
  if (int* reason = reason_to_skip(row, counts)) {
    ++*reason;
    counts.skipped_ids.push_back(row.id);
    return;
  }
  add_to_line(row);
  ++counts.emitted;
}

void BatchWriter::add_to_line(const TokenRow& row) {
  if (in_line_ == line_limit_) {
    full_lines_.emplace_back(encoder_->finish());
    encoder_->begin(lease_);
    in_line_ = 0;
  }
  encoder_->add(row, sign_token(hmac_, row.action, *row.secret, row.code));
  ++in_line_;
}

int* BatchWriter::reason_to_skip(const TokenRow& row, BatchCounts& counts) {
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
