// Tries relays as doctor does, before there is a configuration file.

#include "cmd/init/relay_trial.hpp"

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "carriers/carriers.hpp"
#include "carriers/relay_series.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "config/settings.hpp"

namespace mailroom {
namespace {

/// A file that only this process can name, and that ends with it.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& text) : fd_(memfd_create("mailroom-init", MFD_CLOEXEC)) {
    const auto size = static_cast<ssize_t>(text.size());
    if (fd_ < 0 || fchmod(fd_, S_IRUSR | S_IWUSR) != 0 || ::write(fd_, text.data(), text.size()) != size)
      throw Error(ExitCode::failed, "cannot keep the password in memory for the trial of the relay");
  }
  ~MemoryFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_;
};

constexpr std::string_view smtp = "smtp";

std::string without_users(const std::string& relay) {
  std::vector<std::string> urls;
  for (const auto& group : relay_groups(relay)) {
    if (group.kind != smtp) {
      urls.push_back(group.relays);
      continue;
    }
    for (const auto& each : parse_relay_urls(group.relays))
      urls.push_back(fmt::format("{}://{}", each.implicit_tls ? "smtps" : "smtp", each.address()));
  }
  return joined(urls, ",");
}

void check(const std::vector<Overrides::Flag>& settings) {
  const auto findings = mail_carrier().check(
      load_settings({.file = {}, .flags = settings}, process_environment(), FileUse::ignored));
  const auto failed = std::ranges::find(findings, SinkFinding::Level::failure, &SinkFinding::level);
  if (failed != findings.end()) throw Error(ExitCode::failed, failed->reason, failed->hint);
}

Overrides::Flag setting(const std::string& key, const std::string& text) {
  return {.key = key, .text = text, .name = key};
}

}  // namespace

bool names_user(const std::string& relay) {
  return std::ranges::any_of(relay_groups(relay), [](const RelayGroup& group) {
    return group.kind == smtp && std::ranges::any_of(parse_relay_urls(group.relays),
                                                     [](const RelayUrl& each) { return !each.user.empty(); });
  });
}

void try_relay(const std::string& relay) {
  check({setting("send.relay", without_users(relay)), setting("send.from", "")});
}

void try_relay(const std::string& relay, const RelayLogin& login) {
  std::vector<Overrides::Flag> settings{setting("send.relay", relay), setting("send.from", login.from)};
  if (login.password.empty()) {
    if (!login.password_file.empty()) settings.push_back(setting("send.password_file", login.password_file));
    return check(settings);
  }
  const MemoryFile file(login.password);
  settings.push_back(setting("send.password_file", file.path()));
  check(settings);
}

}  // namespace mailroom
