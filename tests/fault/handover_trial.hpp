#pragma once

#include "fault/delivery_trial.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test {

/// A trial of collectors that hand batches over. The receiver logs a line when it takes it.
class HandoverTrial : public DeliveryTrial {
 public:
  struct Options {
    int collectors = 3;
    int writers = 6;
    int limit = 5;
    int lines = 4;                    ///< in a claim
    std::vector<std::string> more{};  ///< options of the collectors: --exec or --to
  };

  /// The receiver writes its log into `log`. What it took and did not answer may be taken again.
  HandoverTrial(Cluster& cluster, const Plan& plan, Options options, std::string log);
  ~HandoverTrial() override { end(); }

  /// The tokens of a claim.
  int claim() const { return options_.limit * options_.lines; }

 private:
  std::unique_ptr<TestConsumer> hire() const override;
  std::map<std::int64_t, int> judge_taken() override;

  Options options_;
  std::string log_;
};

}  // namespace mailroom::test
