// Tells systemd that a process is ready, reloads, stops or is alive.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace mailroom {

/// The service manager that started this process and waits for its notifications, such as systemd; see
/// sd_notify(3). Without one every call does nothing. Any thread may call.
class ServiceManager {
 public:
  /// Warns if a service manager waits and this build cannot notify it. `log` must outlive this.
  explicit ServiceManager(Log& log);

  bool is_present() const { return is_present_; }
  /// How long the service manager waits for alive() before it kills the process; nullopt: for ever.
  std::optional<Milliseconds> patience() const { return patience_; }

  void ready() const { notify("READY=1"); }
  void reloading() const;
  void stopping() const { notify("STOPPING=1\nSTATUS=stopping"); }
  void alive() const { notify("WATCHDOG=1"); }
  /// `status` is one line, for people.
  void show(const std::string& status) const { notify("STATUS=" + status); }

 private:
  void notify(const std::string& state) const;

  Log& log_;
  bool is_present_ = false;
  std::optional<Milliseconds> patience_;
};

}  // namespace mailroom
