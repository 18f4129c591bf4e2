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
#include "carriers/relay_series.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "config/settings.hpp"
#include "mail/configured_mail.hpp"

namespace mailroom::cmd {
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

bool is_smtp(const config::RelayTarget& relay) {
  return carriers::kind_of_relay(relay).name == "smtp";
}

std::string without_users(const std::string& relays) {
  std::vector<std::string> urls;
  for (const auto& relay : config::parse_relays(relays)) {
    if (!is_smtp(relay)) {
      urls.push_back(relay.url);
      continue;
    }
    const auto url = smtp::parse_relay_url(relay.url);
    urls.push_back(fmt::format("{}://{}", url.implicit_tls ? "smtps" : "smtp", url.address()));
  }
  return joined(urls, ",");
}

void check(const std::vector<config::Overrides::Flag>& flags) {
  const auto settings = config::load_settings({.file = {}, .flags = flags}, config::process_environment(),
                                              config::FileUse::ignored);
  const auto findings = carriers::check_relay_list(settings.send.path, mail::parse_configured_mail(settings));
  const auto failed =
      std::ranges::find(findings, carriers::SinkFinding::Level::failure, &carriers::SinkFinding::level);
  if (failed != findings.end()) throw Error(ExitCode::failed, failed->reason, failed->hint);
}

config::Overrides::Flag setting(const std::string& key, const std::string& text) {
  return {.key = key, .text = text, .name = key};
}

}  // namespace

bool names_user(const std::string& relays) {
  return std::ranges::any_of(config::parse_relays(relays), [](const config::RelayTarget& relay) {
    return is_smtp(relay) && !smtp::parse_relay_url(relay.url).user.empty();
  });
}

void try_relay(const std::string& relay) {
  check({setting("send.relay", without_users(relay)), setting("send.from", "")});
}

void try_relay(const std::string& relay, const RelayLogin& login) {
  std::vector<config::Overrides::Flag> settings{setting("send.relay", relay),
                                                setting("send.from", login.from)};
  if (login.password.empty()) {
    if (!login.password_file.empty()) settings.push_back(setting("send.password_file", login.password_file));
    return check(settings);
  }
  const MemoryFile file(login.password);
  settings.push_back(setting("send.password_file", file.path()));
  check(settings);
}

}  // namespace mailroom::cmd
