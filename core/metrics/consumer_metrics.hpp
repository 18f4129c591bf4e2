// The metrics that a consumer counts itself: tokens, batches, stages and answers of sinks.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <prometheus/metric_family.h>
#include <string>
#include <vector>

#include "consumer/consumer_observer.hpp"
#include "metrics/exemplars.hpp"

namespace prometheus {
class Registry;
}  // namespace prometheus

namespace mailroom::metrics {

/// Counts what a consumer does, for other threads to read. The loop takes a lock for nanoseconds once or
/// twice a batch; a reader never holds one for long.
class ConsumerMetrics final : public consumer::ConsumerObserver {
 public:
  struct Options {
    std::string version;              ///< of mailroom
    std::string command;              ///< `collect`
    std::vector<std::string> queues;  ///< whose counters begin at 0
    bool delivers = false;            ///< for a sink with outcomes
  };

  explicit ConsumerMetrics(const Options& options);
  ~ConsumerMetrics() override;

  void connected() override;
  void learned(const std::vector<std::string>& actions) override;
  void disconnected() override;
  void claimed(const consumer::ObservedClaim& claim) override;
  void finished(const consumer::FinishedBatch& batch) override;
  void answered(const consumer::SinkAnswer& answer) override;
  void reloaded(bool succeeded) override;

  /// True while the consumer has a session.
  bool is_connected() const { return is_connected_; }
  /// From any thread.
  std::vector<prometheus::MetricFamily> collect() const;
  /// The traces of observations. From any thread.
  const Exemplars& exemplars() const { return exemplars_; }

 private:
  struct Families;
  struct QueueCounters;
  struct TokenCounters;
  struct SinkCounters;

  QueueCounters& queue(const std::string& name);
  SinkCounters& sink_counters(const std::string& name);
  void note_exemplars(const consumer::SinkAnswer& answer);
  void count_outcomes(const claim::Receipt& receipt, QueueCounters& counters);

  bool delivers_;
  std::vector<std::string> actions_;  ///< that the last session knows
  std::unique_ptr<prometheus::Registry> registry_;
  std::unique_ptr<Families> families_;
  std::map<std::string, QueueCounters> queues_;
  std::map<std::string, SinkCounters> sinks_;
  Exemplars exemplars_;
  std::atomic<bool> is_connected_ = false;
  bool was_connected_ = false;
};

}  // namespace mailroom::metrics
