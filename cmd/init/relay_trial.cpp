// Tries relays as doctor does, before there is a configuration file.

#include "cmd/init/relay_trial.hpp"

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/error.hpp"
#include "carriers/smtp/carrier.hpp"
#include "carriers/smtp/relay.hpp"
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

std::string without_users(const std::string& relay) {
  std::string text;
  for (const auto& each : parse_relay_urls(relay))
    text += fmt::format("{}{}://{}", text.empty() ? "" : ",", each.implicit_tls ? "smtps" : "smtp",
                        each.address());
  return text;
}

void check(const std::vector<Overrides::Flag>& settings) {
  const auto findings =
      check_smtp(load_settings({.file = {}, .flags = settings}, process_environment(), FileUse::ignored));
  const auto failed = std::ranges::find(findings, SinkFinding::Level::failure, &SinkFinding::level);
  if (failed != findings.end()) throw Error(ExitCode::failed, failed->reason, failed->hint);
}

Overrides::Flag setting(const std::string& key, const std::string& text) {
  return {.key = key, .text = text, .name = key};
}

}  // namespace

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
