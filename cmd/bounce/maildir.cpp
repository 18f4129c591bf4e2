// Names of mails begin with the time at which they came, so that their order is that of the names.

#include "cmd/bounce/maildir.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <istream>
#include <optional>

#include "base/error.hpp"
#include "bounce/bounce.hpp"

namespace mailroom::cmd {
namespace {

namespace fs = std::filesystem;

/// Of what a stream has, as much as a report can have.
std::string read_begin(std::istream& in) {
  std::array<char, 16384> piece{};
  std::string bytes;
  while (in && bytes.size() < bounce::bounce_limits::max_bytes) {
    in.read(piece.data(), piece.size());
    bytes.append(piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  bytes.resize(std::min(bytes.size(), bounce::bounce_limits::max_bytes));
  return bytes;
}

[[noreturn]] void fail(const std::string& what, const std::error_code& error) {
  throw Error(ExitCode::failed, fmt::format("{}: {}", what, error.message()),
              "the maildir must belong to the user that mailroom bounce runs as");
}

}  // namespace

Maildir::Maildir(fs::path directory) : directory_(std::move(directory)) {
  std::error_code error;
  for (const auto* part : {"new", "cur"}) {
    if (!fs::is_directory(directory_ / part, error))
      throw Error(
          ExitCode::configuration,
          fmt::format("{} is no maildir: it has no directory {}", directory_.string(), part),
          "name the directory that the mail server delivers to: it has the directories cur, new and tmp");
  }
}

std::optional<std::string> Maildir::next() {
  if (!is_listed_) list();
  is_listed_ = !listed_.empty();
  if (!is_listed_) return std::nullopt;
  auto name = std::move(listed_.back());
  listed_.pop_back();
  return name;
}

/// A directory of many mails is listed once for many: each listing takes time for all of them.
void Maildir::list() {
  constexpr std::size_t most = 20'000;
  std::error_code error;
  for (fs::directory_iterator entry(directory_ / "new", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = entry->path().filename().string();
    if (!name.starts_with('.')) listed_.push_back(name);
  }
  if (error) fail(fmt::format("cannot read {}", (directory_ / "new").string()), error);
  std::sort(listed_.begin(), listed_.end(), std::greater<>());
  if (listed_.size() > most)
    listed_.erase(listed_.begin(), listed_.end() - static_cast<std::ptrdiff_t>(most));
  is_listed_ = true;
}

std::optional<std::string> Maildir::read(const std::string& name) const {
  const auto path = directory_ / "new" / name;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    fail(fmt::format("cannot read {}", path.string()), {errno, std::generic_category()});
  }
  return read_begin(file);
}

void Maildir::move(const std::string& name, bool is_marked) const {
  std::error_code error;
  const auto bare = name.substr(0, name.find(":2,"));
  fs::rename(directory_ / "new" / name, directory_ / "cur" / (bare + (is_marked ? ":2,FS" : ":2,S")), error);
  if (error && error != std::errc::no_such_file_or_directory)
    fail(fmt::format("cannot move {} to cur", name), error);
}

}  // namespace mailroom::cmd
