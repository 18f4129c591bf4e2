// Reads the counters of the system.

#include "metrics/process_metrics.hpp"

#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace mailroom::metrics {
namespace {

double in_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

MetricFamilies process_metrics(WallTime started) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  MetricFamilies metrics;
  metrics.counter("process_cpu_seconds_total", "Processor time that the process has used.", {},
                  in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime));
  metrics.gauge("process_resident_memory_bytes", "Resident memory of the process.", {}, resident_bytes());
  metrics.gauge("process_start_time_seconds", "When the process began, in seconds since 1970.", {},
                std::chrono::duration<double>(started.time_since_epoch()).count());
  return metrics;
}

}  // namespace mailroom::metrics
