#include "bench/line_sink.hpp"

#include <array>
#include <fcntl.h>
#include <stdexcept>
#include <unistd.h>

#include "bench/collected.hpp"

namespace mailroom::bench {

LineSink::LineSink(ArrivalTimes& times, std::string only_action)
    : times_(times), only_action_(std::move(only_action)) {
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
  const auto end = bytes.rfind('\n') + 1;
  for (std::size_t start = 0; start < end;) {
    const auto line_end = bytes.find('\n', start);
    read_line(std::string_view(bytes).substr(start, line_end - start), [&](const CollectedToken& token) {
      if (only_action_.empty() || token.action == only_action_) times_.note(token.login);
    });
    start = line_end + 1;
  }
  bytes.erase(0, end);
}

}  // namespace mailroom::bench
