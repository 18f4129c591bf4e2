// Writes batches to stdout or a file as lines, for a consumer without a carrier.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/output.hpp"
#include "base/spool.hpp"
#include "compose/encoder.hpp"
#include "consumer/sink.hpp"

namespace mailroom::carriers {

/// Writes a batch as lines, each in a separate write. A token is emitted once
/// its line is written. A batch without due tokens has no line. Large lines wait in a file until the batch is
/// complete.
class LineSink final : public consumer::Sink {
 public:
  /// `log` may be null; otherwise it must outlive this.
  LineSink(std::unique_ptr<compose::Encoder> encoder, Output& output, Log* log = nullptr);

  void begin(const claim::Lease& lease, int line_limit) override;
  void add(const claim::TokenRow& row, std::string_view token) override;
  /// Nothing of it is written: the next one takes its place.
  void forget() override { in_batch_ = 0; }
  consumer::BatchOutcome finish(const std::function<void()>& when_slow) override;
  bool is_ready() const override { return output_.takes_more(); }

 private:
  void end_line();

  std::unique_ptr<compose::Encoder> encoder_;
  Output& output_;
  Spool spool_;
  claim::Lease lease_;
  int line_limit_ = 0;
  int in_line_ = 0;
  int in_batch_ = 0;
  std::vector<SpooledText> full_lines_;  ///< all but the last line, which is still in the encoder
  bool may_be_within_line_ = true;       ///< an earlier process may have been killed while it wrote a line
};

}  // namespace mailroom::carriers
