#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "consumer/sink.hpp"

namespace mailroom::test {

/// Writes a batch as a line when it is finished, and lets two batches be open.
class TwoOpenSink final : public consumer::Sink {
 public:
  /// `room`: how many tokens it takes in a batch.
  TwoOpenSink(Output& output, int room) : output_(output), room_(room) {}

  std::size_t most_open() const override { return 2; }
  int room() const override { return room_; }
  void begin(const claim::Lease& lease, int /*line_limit*/) override {
    open_.push_back({compose::make_jsonl_encoder(), 0});
    open_.back().encoder->begin(lease);
  }
  void add(const claim::TokenRow& row, std::string_view token) override {
    open_.back().encoder->add(row, token);
    ++open_.back().tokens;
  }
  void forget() override { open_.pop_back(); }
  consumer::BatchOutcome finish(const std::function<void()>& /*when_slow*/) override {
    auto oldest = std::move(open_.front());
    open_.pop_front();
    if (oldest.tokens > 0) output_.write(oldest.encoder->finish());
    return {.emitted = oldest.tokens};
  }
  bool is_ready() const override { return true; }

 private:
  struct Open {
    std::unique_ptr<compose::Encoder> encoder;
    int tokens;
  };

  Output& output_;
  int room_;
  std::deque<Open> open_;
};

}  // namespace mailroom::test
