// Names of mails begin with the time at which they came, so that their order is that of the names.

#include "cmd/bounce/maildir.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "bounce/bounce.hpp"

namespace mailroom {
namespace {

namespace fs = std::filesystem;

/// Of what a stream has, as much as a report can have.
std::string read_begin(std::istream& in) {
  std::string bytes(bounce_limits::max_bytes, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
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

std::vector<std::string> Maildir::unread(std::size_t most) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory_ / "new", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = entry->path().filename().string();
    if (!name.starts_with('.')) names.push_back(name);
  }
  if (error) fail(fmt::format("cannot read {}", (directory_ / "new").string()), error);
  const auto kept = std::min(most, names.size());
  std::partial_sort(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(kept), names.end());
  names.resize(kept);
  return names;
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

std::string read_report_file(const std::string& path) {
  if (path == "-") {
    auto bytes = read_begin(std::cin);
    // Whoever writes must not meet a closed pipe.
    std::cin.ignore(std::numeric_limits<std::streamsize>::max());
    return bytes;
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ExitCode::failed, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  return read_begin(file);
}

}  // namespace mailroom
