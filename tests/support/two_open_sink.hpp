#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "consumer/line_sink.hpp"

namespace mailroom::test {

/// Writes a batch as a line when it is finished, and lets two batches be open.
class TwoOpenSink final : public Sink {
 public:
  explicit TwoOpenSink(Output& output) : output_(output) {}

  /// Called with the number of open batches after each begin() and before each finish().
  std::function<void(std::size_t)> on_change = [](std::size_t) {};

  std::size_t most_open() const override { return 2; }
  void begin(const Lease& lease, int /*line_limit*/) override {
    open_.push_back({make_jsonl_encoder(), 0});
    open_.back().encoder->begin(lease);
    on_change(open_.size());
  }
  void add(const TokenRow& row, const TokenText& token) override {
    open_.back().encoder->add(row, token);
    ++open_.back().tokens;
  }
  BatchOutcome finish(const std::function<void()>& /*when_slow*/) override {
    on_change(open_.size());
    auto oldest = std::move(open_.front());
    open_.pop_front();
    if (oldest.tokens > 0) output_.write(oldest.encoder->finish());
    return {.emitted = oldest.tokens};
  }
  bool is_ready() const override { return true; }

 private:
  struct Open {
    std::unique_ptr<Encoder> encoder;
    int tokens;
  };

  Output& output_;
  std::deque<Open> open_;
};

}  // namespace mailroom::test
