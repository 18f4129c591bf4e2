// Files with a secret are created so that nobody else can read them at any moment.

#include "cmd/init/installation.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <iterator>
#include <pwd.h>
#include <string_view>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "base/output.hpp"
#include "base/text.hpp"
#include "config/key_table.hpp"

namespace mailroom::cmd {
namespace {

/// A value in YAML, whatever it contains.
std::string yaml_text(std::string_view text) {
  std::string all = "'";
  for (const char c : text) {
    if (c == '\'') all += '\'';
    all += c;
  }
  return all + "'";
}

std::string yaml_value(const config::SettingValue& value) {
  if (!config::find_key(value.key)->is_list) return yaml_text(value.text);
  std::vector<std::string> items;
  std::ranges::transform(value.items, std::back_inserter(items), yaml_text);
  return fmt::format("[{}]", joined(items, ", "));
}

[[noreturn]] void throw_unwritable(const std::string& path) {
  throw Error(ExitCode::failed, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

std::string random_key() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(ExitCode::failed, "there are no random bytes for a key");
  return hex_text(bytes) + "\n";
}

/// Lets the services read a file of root.
void share_with_services(int fd, const std::string& path) {
  const auto* const group = getgrnam(service_user);
  if (group == nullptr || fchown(fd, 0, group->gr_gid) != 0 || fchmod(fd, 0640) != 0) throw_unwritable(path);
}

/// Writes a new file, or adds to one; `flags` says which. False if it exists and was to be new.
bool write_file(const std::string& path, const std::string& text, int flags, bool shared) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | flags, 0600);
  if (fd < 0 && errno == EEXIST) return false;
  if (fd < 0) throw_unwritable(path);
  if (shared) share_with_services(fd, path);
  Output(fd).write(text);
  if (fsync(fd) != 0 || close(fd) != 0) throw_unwritable(path);
  return true;
}

}  // namespace

std::string configuration_of(const Installation& installation, bool has_key) {
  std::string text =
      fmt::format("# By mailroom init, {}. mailroom.yaml.example describes every key.\ndatabase:\n",
                  moment_text(std::chrono::floor<Moment::duration>(std::chrono::system_clock::now())));
  if (!installation.database.empty()) text += fmt::format("  url: {}\n", yaml_text(installation.database));
  text += fmt::format("  schema: {}\n", yaml_text(installation.schema));
  if (!has_key) text += fmt::format("signing:\n  key_file: {}\n", installation.key());
  text += fmt::format("send:\n  relay: {}\n", yaml_text(installation.relay));
  if (installation.password) text += fmt::format("  password_file: {}\n", installation.password_path());
  if (!installation.password_file.empty())
    text += fmt::format("  password_file: {}\n", yaml_text(installation.password_file));
  for (const auto& value : installation.relay_settings)
    text += fmt::format("  {}: {}\n", value.key.substr(value.key.find('.') + 1), yaml_value(value));
  text += fmt::format("  from: {}\n", yaml_text(installation.from));
  if (!installation.link.empty()) text += fmt::format("  link: {}\n", yaml_text(installation.link));
  return text;
}

std::vector<std::string> write_files(const Installation& installation, bool has_key) {
  const bool shared = installation.with_systemd;
  std::vector<std::string> written;
  const auto write_new = [&](const std::string& name, const std::string& text) {
    const auto path = installation.directory + "/" + name;
    if (write_file(path, text, O_EXCL, shared)) written.push_back(path);
  };
  // A key that is there signs links that people have.
  write_new(installation.key(), random_key());
  if (installation.password) write_new(installation.password_path(), *installation.password + "\n");
  const auto file = installation.file();
  const bool is_new = access(file.c_str(), F_OK) != 0;
  write_file(file, (is_new ? "" : "\n") + configuration_of(installation, has_key), O_APPEND,
             shared && is_new);
  written.push_back(file);
  return written;
}

bool write_new_file(const std::string& path, const std::string& text, bool shared) {
  return write_file(path, text, O_EXCL, shared);
}

void add_to_file(const std::string& path, const std::string& text) {
  write_file(path, text, O_APPEND, false);
}

ActingAsService::ActingAsService(bool acts) : acts_(acts) {
  if (!acts_) return;
  const auto* const user = getpwnam(service_user);
  if (user == nullptr)
    throw Error(ExitCode::failed, fmt::format("there is no user {}", service_user),
                "the package makes it: --systemd is for a host where the package is installed");
  if (setegid(user->pw_gid) != 0 || seteuid(user->pw_uid) != 0)
    throw Error(ExitCode::failed, fmt::format("cannot act as {}: {}", service_user, std::strerror(errno)));
}

ActingAsService::~ActingAsService() {
  if (acts_ && (seteuid(0) != 0 || setegid(0) != 0)) std::abort();
}

}  // namespace mailroom::cmd
