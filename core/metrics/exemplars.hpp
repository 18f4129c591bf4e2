// Which trace shows an observation of each bucket of a histogram.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "trace/traceparent.hpp"

namespace mailroom::metrics {

/// An observation with its trace.
struct Exemplar {
  trace::TraceId trace{};
  double value = 0;
  WallTime at{};
};

/// The exemplars of a histogram, by bucket; those without one are missing.
using BucketExemplars = std::map<std::size_t, Exemplar>;

/// The newest exemplar of each bucket. For any thread.
class Exemplars {
 public:
  /// Of the histogram `name` with this value of its only label. `bounds`: the upper bounds of its buckets.
  void note(const std::string& name, const std::string& label, const std::vector<double>& bounds,
            const Exemplar& exemplar);
  BucketExemplars of(const std::string& name, const std::string& label) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, BucketExemplars> all_;
};

}  // namespace mailroom::metrics
