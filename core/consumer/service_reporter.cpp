// The loop notes what happens, and a thread notifies often enough for the watchdog.

#include "consumer/service_reporter.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/threads.hpp"
#include "base/wording.hpp"
#include "status/queue_status.hpp"

#ifdef MAILROOM_SYSTEMD
#endif

namespace mailroom::consumer {
namespace {

/// The age of the oldest of some tokens; nullopt for none.
std::optional<Milliseconds> age_of(std::span<const CreatedTokens> created) {
  if (created.empty()) return std::nullopt;
  const auto oldest = std::min_element(created.begin(), created.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto age = std::chrono::system_clock::now().time_since_epoch() - std::chrono::seconds(oldest->second);
  return std::max(std::chrono::duration_cast<Milliseconds>(age), Milliseconds(0));
}

/// The status names a delivery that takes longer.
constexpr Milliseconds long_delivery{3000};

std::string in_seconds(Milliseconds duration) {
  return format_duration(std::chrono::floor<std::chrono::seconds>(duration));
}

}  // namespace

CountBacklog backlog_counter(const db::DatabaseTarget& target, const std::vector<std::string>& queues) {
  return [target, queues]() -> std::optional<std::int64_t> {
    try {
      constexpr Milliseconds patience{2000};
      db::Connection connection(target, "mailroom status", {.answer = patience, .statement = patience});
      std::int64_t waiting = 0;
      for (const auto& queue : queues)
        waiting += status::read_pending_tokens(connection, queue).total();
      return waiting;
    } catch (const Error&) {
      // The consumer's session reports what is wrong with the database; here it means that nobody knows.
      return std::nullopt;
    }
  };
}

ServiceReporter::ServiceReporter(const ServiceManager& manager, const process::StopSignal& signal,
                                 const process::StopWatcher& watcher, TimePoint started)
    : manager_(manager), signal_(signal), watcher_(watcher), loop_(started), status_(started) {
  if (!manager_.is_present()) return;
  end_ = eventfd(0, EFD_CLOEXEC);
  if (end_ < 0) throw Error(ExitCode::failed, "cannot make an eventfd");
  const BlockedSignals blocked;
  thread_ = std::thread([this] { watch(); });
}

ServiceReporter::~ServiceReporter() {
  if (end_ < 0) return;
  eventfd_write(end_, 1);
  thread_.join();
  close(end_);
}

void ServiceReporter::waits(TimePoint until) {
  loop_.waits(until);
  // With an unavailable relay no poll comes first.
  if (has_session_) become_ready();
}

void ServiceReporter::delivers() {
  loop_.delivers();
  const std::lock_guard lock(mutex_);
  status_.delivers(steady_now());
}

void ServiceReporter::connected() {
  has_session_ = true;
  const std::lock_guard lock(mutex_);
  status_.connected();
}

void ServiceReporter::disconnected() {
  has_session_ = false;
  const std::lock_guard lock(mutex_);
  status_.disconnected();
}

void ServiceReporter::claimed(const ObservedClaim& claim) {
  become_ready();
  const std::lock_guard lock(mutex_);
  if (!claim.only_acknowledged)
    status_.claimed(claim.queue, claim.reply.lease.has_value(), claim.reply.pending);
}

void ServiceReporter::finished(const FinishedBatch& batch) {
  const std::lock_guard lock(mutex_);
  status_.finished(batch.receipt.counts.emitted, age_of(batch.created));
}

void ServiceReporter::reloading() {
  manager_.reloading();
}

void ServiceReporter::reloaded(bool /*succeeded*/) {
  // Also before the first poll: systemd waits for it, and the unit is started by then.
  is_ready_ = true;
  manager_.ready();
}

void ServiceReporter::become_ready() {
  if (std::exchange(is_ready_, true)) return;
  manager_.ready();
  if (manager_.is_present()) renew_status(steady_now());
}

void ServiceReporter::watch() {
  const auto patience = manager_.patience();
  const auto interval = std::min(status_interval, patience.value_or(status_interval) / 4);
  std::array<pollfd, 2> awaited{{{end_, POLLIN, 0}, {signal_.stop_fd(), POLLIN, 0}}};
  // Not at once: a service whose configuration is wrong ends before that, and does not wait for the database.
  auto next_status = steady_now();
  for (;;) {
    const int ready = poll(awaited.data(), awaited.size(), static_cast<int>(interval.count()));
    if (ready < 0) continue;
    // First, since a quick stop may be over by now.
    if (awaited[1].revents != 0) {
      manager_.stopping();
      awaited[1].fd = -1;
    }
    if (awaited[0].revents != 0) return;
    const auto now = steady_now();
    if (patience && is_alive(now)) manager_.alive();
    if (now < next_status || awaited[1].fd < 0) continue;
    count_backlog(now);
    renew_status(now);
    next_status = now + status_interval;
  }
}

bool ServiceReporter::is_alive(TimePoint now) const {
  return loop_.overdue(now) < *manager_.patience() / 2 || watcher_.awaited() == process::Awaited::database;
}

void ServiceReporter::count_with(CountBacklog count) {
  const std::lock_guard lock(mutex_);
  count_ = std::move(count);
}

void ServiceReporter::count_backlog(TimePoint now) {
  CountBacklog count;
  {
    const std::lock_guard lock(mutex_);
    if (now < next_count_ || !count_ || !status_.is_behind()) return;
    count = count_;
  }
  const auto waiting = count();
  next_count_ = now + count_interval;
  const std::lock_guard lock(mutex_);
  status_.counted(waiting);
}

void ServiceReporter::renew_status(TimePoint now) {
  const std::lock_guard lock(mutex_);
  auto status = status_.renew(now);
  if (status == shown_) return;
  manager_.show(status);
  shown_ = std::move(status);
}

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

void ServiceStatus::finished(int emitted, std::optional<Milliseconds> age) {
  delivering_since_.reset();
  emitted_ += emitted;
  if (age) oldest_ = std::max(oldest_.value_or(Milliseconds(0)), *age);
}

bool ServiceStatus::is_behind() const {
  return std::any_of(claims_.begin(), claims_.end(), [](const auto& claim) { return claim.second.took; });
}

std::int64_t ServiceStatus::waiting() const {
  if (is_behind() && counted_) return *counted_;
  std::int64_t pending = 0;
  for (const auto& [queue, claim] : claims_)
    pending += claim.pending;
  return pending;
}

std::string ServiceStatus::renew(TimePoint now) {
  const double seconds = std::max(std::chrono::duration<double>(now - renewed_).count(), 0.001);
  const auto since = emitted_ - emitted_before_;
  std::string text = is_connected_ ? fmt::format("{:.1f} tokens/s", static_cast<double>(since) / seconds)
                                   : std::string("waiting for the database");
  if (is_connected_ && since > 0 && oldest_)
    text += fmt::format(", emitted up to {} after their creation", in_seconds(*oldest_));
  if (is_connected_) text += fmt::format(", {} pending", with_thousands(waiting()));
  if (delivering_since_ && now - *delivering_since_ >= long_delivery) {
    text += fmt::format(", the receiver takes nothing for {}",
                        in_seconds(std::chrono::duration_cast<Milliseconds>(now - *delivering_since_)));
  }
  text += fmt::format("; {} emitted", with_thousands(emitted_));
  emitted_before_ = emitted_;
  oldest_.reset();
  renewed_ = now;
  return text;
}

}  // namespace mailroom::consumer
