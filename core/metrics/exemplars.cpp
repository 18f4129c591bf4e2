// A bucket has the observations up to its bound, as Prometheus counts them.

#include "metrics/exemplars.hpp"

#include <algorithm>

namespace mailroom::metrics {

void Exemplars::note(const std::string& name, const std::string& label, const std::vector<double>& bounds,
                     const Exemplar& exemplar) {
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), exemplar.value) - bounds.begin();
  const std::lock_guard lock(mutex_);
  all_[{name, label}][static_cast<std::size_t>(bucket)] = exemplar;
}

BucketExemplars Exemplars::of(const std::string& name, const std::string& label) const {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find({name, label});
  return found == all_.end() ? BucketExemplars() : found->second;
}

}  // namespace mailroom::metrics
