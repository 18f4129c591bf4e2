// The sink of mailroom collect that writes to stdout.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "consumer/encoder.hpp"
#include "consumer/sink.hpp"

namespace mailroom {

/// Writes a batch as lines, each in a separate write. A token is emitted once
/// its line is written. A batch without due tokens has no line.
class LineSink final : public Sink {
 public:
  LineSink(std::unique_ptr<Encoder> encoder, Output& output);

  void begin(const Lease& lease, int line_limit) override;
  void add(const TokenRow& row, const TokenText& token) override;
  BatchOutcome finish(const std::function<void()>& when_slow) override;
  bool is_ready() const override { return output_.takes_more(); }

 private:
  std::unique_ptr<Encoder> encoder_;
  Output& output_;
  Lease lease_;
  int line_limit_ = 0;
  int in_line_ = 0;
  int in_batch_ = 0;
  std::vector<std::string> full_lines_;  ///< all but the last line, which is still in the encoder
  bool may_be_within_line_ = true;       ///< an earlier process may have been killed while it wrote a line
};

}  // namespace mailroom
