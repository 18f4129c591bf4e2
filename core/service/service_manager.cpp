// Calls sd_notify(3) where the build has it, and warns where systemd waits in vain.

#include "service/service_manager.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fmt/format.h>
#ifdef MAILROOM_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

namespace mailroom {

ServiceManager::ServiceManager(Log& log) : log_(log) {
  const char* socket = std::getenv("NOTIFY_SOCKET");
  if (socket == nullptr || *socket == '\0') return;
#ifdef MAILROOM_SYSTEMD
  is_present_ = true;
  std::uint64_t patience_us = 0;
  if (sd_watchdog_enabled(0, &patience_us) > 0)
    patience_ = std::chrono::floor<Milliseconds>(std::chrono::microseconds(patience_us));
#else
  log_.warn("the service manager waits for notifications, which this mailroom is built without",
            {{"fix", "Type=exec in the unit, or a build with MAILROOM_SYSTEMD"}});
#endif
}

void ServiceManager::reloading() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  // With Type=notify-reload systemd tells by the time whether this answers its request.
  const auto microseconds = static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1'000;
  notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", microseconds));
}

void ServiceManager::notify(const std::string& state) const {
  if (!is_present_) return;
#ifdef MAILROOM_SYSTEMD
  const int sent = sd_notify(0, state.c_str());
  if (sent < 0) log_.warn("cannot notify the service manager", {{"reason", std::strerror(-sent)}});
#else
  static_cast<void>(state);
#endif
}

}  // namespace mailroom
