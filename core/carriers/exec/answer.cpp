// Reads the answers of the program of sink.exec, and what they mean for the lines that ExecCarrier has in
// flight.

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "carriers/exec/carrier.hpp"

namespace mailroom::exec {
namespace {

std::string_view next_word(std::string_view& rest) {
  const auto end = std::min(rest.find(' '), rest.size());
  const auto word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

constexpr std::size_t longest_answer = 4096;
constexpr std::int64_t most_strangers = 1000;
constexpr int exit_time = 100;  ///< milliseconds from the end of its answers to that of a program that exits

bool ends_now(const ExecChild& child) {
  pollfd fd{child.process(), POLLIN, 0};
  return poll(&fd, 1, exit_time) > 0;
}

}  // namespace

std::optional<ExecAnswer> parse_exec_answer(std::string_view line) {
  auto rest = line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
  const auto kind = next_word(rest);
  ExecAnswer answer;
  answer.batch = next_word(rest);
  if (answer.batch.empty() || (kind != "ok" && kind != "fail")) return std::nullopt;
  if (kind == "fail") {
    const auto token = next_word(rest);
    answer.token = parse_number<std::int64_t>(token);
    if (!answer.token && token != "*") return std::nullopt;
    const auto what = next_word(rest);
    if (what != "retry" && what != "reject") return std::nullopt;
    answer.verdict = what == "retry" ? delivery::Verdict::deferred : delivery::Verdict::rejected;
  }
  answer.text = rest;
  return answer;
}

void ExecCarrier::read_answers(std::size_t at_most) {
  std::array<char, 4096> buffer{};
  for (std::size_t size = 0; child_ && size < at_most;) {
    const auto count = read(child_->answers(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count == 0) {
      watch(child_->answers(), 0, EPOLL_CTL_DEL);
      if (ends_now(*child_)) return;
      return end("closed its answers");
    }
    size += static_cast<std::size_t>(count);
    input_.append(buffer.data(), static_cast<std::size_t>(count));
    take_lines();
  }
}

void ExecCarrier::take_lines() {
  std::size_t begin = 0;
  for (auto end_of_line = input_.find('\n'); end_of_line != std::string::npos;
       end_of_line = input_.find('\n', begin)) {
    take_answer(std::string_view(input_).substr(begin, end_of_line - begin));
    begin = end_of_line + 1;
  }
  input_.erase(0, begin);
  if (input_.size() > longest_answer) return end("answered without an end of the line");
  if (strangers_ > most_strangers) return end("answered nothing but what it was not asked");
  end_if_deaf();
}

void ExecCarrier::take_answer(std::string_view line) {
  auto answer = parse_exec_answer(line);
  const auto found = answer ? given_.find(answer->batch) : given_.end();
  if (found == given_.end() || found->second.end == 0) return note_stranger(line);
  const auto& tokens = found->second.message.tokens;
  if (answer->token && std::ranges::find(tokens, *answer->token) == tokens.end()) return note_stranger(line);
  progress_ = steady_now();
  has_answered_ = true;
  strangers_ = 0;
  pause_ = Milliseconds(0);
  if (complete(found->second, *std::move(answer))) given_.erase(found);
}

/// True if every token of the line has its answer now.
bool ExecCarrier::complete(Given& given, ExecAnswer taken) {
  if (!taken.token) {
    answer(given, taken.verdict, std::move(taken.text));
    return true;
  }
  auto& failures = given.failures;
  const auto known = std::ranges::find(failures, *taken.token, &delivery::TokenVerdict::token);
  if (known != failures.end()) failures.erase(known);
  failures.push_back({*taken.token, taken.verdict, std::move(taken.text)});
  if (failures.size() < given.message.tokens.size()) return false;
  answer(given, taken.verdict, {});
  return true;
}

/// A line that answers nothing: a batch that this program never had, one that it has answered, or no answer.
void ExecCarrier::note_stranger(std::string_view line) {
  if (++strangers_ > 1) return;
  log_.warn("the program answered what it was not asked",
            {{"program", name_}, {"answer", shown_text(without_secrets(line.substr(0, 200)))}});
}

}  // namespace mailroom::exec
