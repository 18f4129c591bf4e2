// Writes nothing before the batch is complete, and first ends a line that an earlier process left open.

#include "carriers/line_sink.hpp"

namespace mailroom::carriers {

LineSink::LineSink(std::unique_ptr<compose::Encoder> encoder, Output& output, Log* log)
    : encoder_(std::move(encoder)), output_(output), spool_(log) {}

void LineSink::begin(const claim::Lease& lease, int line_limit) {
  lease_ = lease;
  line_limit_ = line_limit;
  in_line_ = 0;
  in_batch_ = 0;
  full_lines_.clear();
  spool_.begin_batch();
  encoder_->begin(lease);
}

void LineSink::add(const claim::TokenRow& row, std::string_view token) {
  if (in_line_ == line_limit_) end_line();
  if (!encoder_->add(row, token)) {
    end_line();
    encoder_->add(row, token);
  }
  ++in_line_;
  ++in_batch_;
}

void LineSink::end_line() {
  full_lines_.push_back(spool_.keep(std::string(encoder_->finish())));
  encoder_->begin(lease_);
  in_line_ = 0;
}

consumer::BatchOutcome LineSink::finish(const std::function<void()>& when_slow) {
  if (in_batch_ == 0) return {};
  if (may_be_within_line_ && output_.is_within_line()) output_.write("\n");
  may_be_within_line_ = false;
  std::string memory;
  for (const auto& line : full_lines_)
    output_.write(line.read(memory), when_slow);
  output_.write(encoder_->finish(), when_slow);
  return {.emitted = in_batch_};
}

}  // namespace mailroom::carriers
