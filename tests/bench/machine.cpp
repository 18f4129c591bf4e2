#include "bench/machine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "support/subprocess.hpp"

namespace mailroom::bench {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

double median_fsync_ms(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0) throw std::runtime_error("cannot write " + path);
  const std::array<char, 8192> page{};
  std::vector<double> times;
  for (int i = 0; i < 300; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const bool done = pwrite(file, page.data(), page.size(), (i % 100) * 8192) > 0 && fdatasync(file) == 0;
    if (!done) throw std::runtime_error("cannot write " + path);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  close(file);
  unlink(path.c_str());
  std::nth_element(times.begin(), times.begin() + 150, times.end());
  return times[150];
}

}  // namespace

std::string load_averages() {
  std::array<double, 3> loads{};
  if (getloadavg(loads.data(), 3) != 3) return "unknown";
  return fmt::format("{:.2f} {:.2f} {:.2f}", loads[0], loads[1], loads[2]);
}

Machine describe_machine(Stage& stage) {
  struct sysinfo memory {};
  sysinfo(&memory);
  utsname names{};
  uname(&names);
  const auto connection = stage.connect("postgres");
  return {.processor = processor_name(),
          .cores = std::thread::hardware_concurrency(),
          .memory_mib = static_cast<std::int64_t>(memory.totalram * memory.mem_unit >> 20),
          .kernel = names.release,
          .server = connection->run("SHOW server_version")[0][0].as<std::string>(),
          .fsync_ms = median_fsync_ms(stage.cluster().path("fsync")),
          .load_before = load_averages(),
          .started = moment_text(connection->server_time())};
}

std::string describe(const Machine& machine) {
  auto text = fmt::format("{}: {}, {} cores, {} MiB, Linux {}\n", machine.started, machine.processor,
                          machine.cores, machine.memory_mib, machine.kernel);
  text += fmt::format("PostgreSQL {}, fsync and synchronous_commit on; one fsync takes {:.2f} ms\n",
                      machine.server, machine.fsync_ms);
  if (machine.flush_ms > 0)
    text += fmt::format("each flush of the WAL was made {} ms longer\n", machine.flush_ms);
  return text + fmt::format("load average before {}, after {}\n", machine.load_before, machine.load_after);
}

nlohmann::ordered_json to_json(const Machine& machine) {
  return {{"started", machine.started},
          {"processor", machine.processor},
          {"cores", machine.cores},
          {"memory_mib", machine.memory_mib},
          {"kernel", machine.kernel},
          {"postgresql", machine.server},
          {"fsync_ms", machine.fsync_ms},
          {"flush_ms", machine.flush_ms},
          {"load_before", machine.load_before},
          {"load_after", machine.load_after}};
}

}  // namespace mailroom::bench
