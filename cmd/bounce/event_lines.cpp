// A line that is no event ends the run: what it said would be lost otherwise.

#include "cmd/bounce/event_lines.hpp"

#include <fmt/format.h>
#include <istream>
#include <iterator>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::size_t events_at_once = 500;
constexpr std::size_t longest_event_line = std::size_t{1} << 20;

[[noreturn]] void refuse_line(const std::string& name, std::size_t line, const std::string& problem) {
  throw Error(
      ExitCode::failed, fmt::format("{}, line {}: {}", name, line, shown_text(problem)),
      R"(write {"address": "ada@mail.example", "kind": "hard", "reason": "550 5.1.1 user unknown", "token": 42}, or an event of a provider, in one line; what stood before is recorded)");
}

}  // namespace

void read_event_lines(std::istream& in, const std::string& name, BounceReader& reader,
                      const std::function<void(const suppression::RecordedBounce&)>& tell) {
  std::vector<bounce::ReadEvent> waiting;
  const auto record = [&] {
    for (const auto& bounce : reader.record(name, reader.judge(waiting)))
      tell(bounce);
    waiting.clear();
  };
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (trimmed(line).empty()) continue;
    auto read = line.size() > longest_event_line ? bounce::ReadEvents{.problem = "it is longer than 1 MiB"}
                                                 : bounce::read_events(line);
    if (read.problem.empty() && !read.unknown.empty())
      read.problem = fmt::format("its kind is not known: {}", read.unknown.front());
    if (!read.problem.empty()) {
      record();
      refuse_line(name, number, read.problem);
    }
    std::ranges::move(read.events, std::back_inserter(waiting));
    if (waiting.size() >= events_at_once) record();
  }
  record();
}

}  // namespace mailroom::cmd
