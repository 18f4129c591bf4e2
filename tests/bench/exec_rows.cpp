// How fast `collect` hands lines over to a program that acknowledges them, beside the same program at the end
// of a pipe, without acknowledgement.

#include <array>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <unistd.h>

#include "base/output.hpp"
#include "bench/handover.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {
namespace {

std::string this_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

Figures per_second(const Handover& handover, const Cost& cost) {
  return {{.value = static_cast<double>(handover.lines) / cost.seconds, .unit = "lines/s"}};
}

/// The program tells the number of lines that it has read.
void require_read(const Handover& handover, const std::string& file) {
  std::int64_t read = 0;
  std::ifstream(file) >> read;
  if (read != handover.lines)
    throw std::runtime_error(fmt::format("{} of {} lines were read", read, handover.lines));
}

Figures measure_exec(Stage& stage) {
  const auto handover = prepare_handover(stage);
  auto setup = handover_collector(stage, handover, {"--exec", this_program() + " --acknowledge"});
  setup.output = stage.path("read");
  const auto cost = Process(setup).wait();
  require_read(handover, setup.output);
  require_accepted(stage, handover);
  return per_second(handover, cost);
}

Figures measure_pipe(Stage& stage) {
  const auto handover = prepare_handover(stage);
  auto setup = handover_collector(stage, handover, {"--format", "jsonl", "--lines-per-claim", "64"});
  setup.command.insert(setup.command.begin(), {"/bin/sh", "-c", "\"$@\" | \"$0\" --read", this_program()});
  setup.output = stage.path("read");
  const auto cost = Process(setup).wait();
  require_read(handover, setup.output);
  return per_second(handover, cost);
}

}  // namespace

int read_lines(bool acknowledges) {
  constexpr int answers_fd = 3;
  std::array<char, 65536> piece{};
  std::string bytes;
  std::string answers;
  std::int64_t lines = 0;
  for (;;) {
    const auto size = read(STDIN_FILENO, piece.data(), piece.size());
    if (size < 0) throw std::runtime_error("stdin cannot be read");
    if (size == 0) break;
    bytes.append(piece.data(), static_cast<std::size_t>(size));
    std::size_t start = 0;
    for (auto end = bytes.find('\n'); end != std::string::npos; end = bytes.find('\n', start)) {
      ++lines;
      if (acknowledges) answers += "ok " + bytes.substr(start, bytes.find(' ', start) - start) + "\n";
      start = end + 1;
    }
    bytes.erase(0, start);
    if (!answers.empty()) Output(answers_fd).write(answers);
    answers.clear();
  }
  std::cout << lines << std::endl;
  return 0;
}

std::vector<Row> exec_rows() {
  const auto prepare = [](Stage& stage) { prepare_handover(stage); };
  return {
      {.name = "handover/pipe",
       .meaning = "one collector, lines of ten tokens, 64 a claim, into a pipe to a program that reads them",
       .prepare = prepare,
       .measure = measure_pipe},
      {.name = "handover/exec",
       .meaning = "the same with --exec: the program acknowledges each line, and each token is recorded",
       .prepare = prepare,
       .measure = measure_exec}};
}

}  // namespace mailroom::bench
