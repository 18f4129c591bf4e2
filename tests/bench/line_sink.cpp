#include "bench/line_sink.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <fcntl.h>
#include <stdexcept>
#include <unistd.h>

#include "bench/collected.hpp"

namespace mailroom::bench {
namespace {

constexpr auto patience = std::chrono::seconds(10);

std::int64_t microseconds_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Returns 17 for `user17`.
std::size_t account_of(std::string_view login) {
  std::size_t id = 0;
  login.remove_prefix(std::min<std::size_t>(4, login.size()));
  std::from_chars(login.data(), login.data() + login.size(), id);
  return id;
}

}  // namespace

LineSink::LineSink(std::int64_t accounts) : came_at_(static_cast<std::size_t>(accounts) + 1) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  read_end_ = ends[0];
  write_end_ = ends[1];
  reader_ = std::thread([this] { read_lines(); });
}

LineSink::~LineSink() {
  close_input();
  reader_.join();
  close(read_end_);
}

void LineSink::close_input() {
  if (write_end_ >= 0) close(write_end_);
  write_end_ = -1;
}

bool LineSink::wait_for(std::int64_t account) {
  std::unique_lock lock(lock_);
  return changed_.wait_for(lock, patience, [&] { return came_at(account) != 0; });
}

bool LineSink::wait_for_count(std::int64_t count) {
  std::unique_lock lock(lock_);
  return changed_.wait_for(lock, patience, [&] { return count_ >= count; });
}

void LineSink::read_lines() {
  std::string bytes;
  std::array<char, 65536> piece{};
  for (;;) {
    const auto size = read(read_end_, piece.data(), piece.size());
    if (size <= 0) return;
    bytes.append(piece.data(), static_cast<std::size_t>(size));
    if (piece[static_cast<std::size_t>(size) - 1] == '\n' || bytes.find('\n') != std::string::npos)
      note_whole_lines(bytes);
  }
}

void LineSink::note_whole_lines(std::string& bytes) {
  const auto now = microseconds_now();
  const auto end = bytes.rfind('\n') + 1;
  {
    const std::lock_guard lock(lock_);
    for (std::size_t start = 0; start < end;) {
      const auto line_end = bytes.find('\n', start);
      read_line(std::string_view(bytes).substr(start, line_end - start), [&](const CollectedToken& token) {
        came_at_.at(account_of(token.login)) = now;
        ++count_;
      });
      start = line_end + 1;
    }
  }
  changed_.notify_all();
  bytes.erase(0, end);
}

}  // namespace mailroom::bench
