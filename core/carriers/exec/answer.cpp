// Splits at single blanks, and keeps the rest of the line as the program wrote it.

#include "carriers/exec/answer.hpp"

#include "base/text.hpp"

namespace mailroom {
namespace {

std::string_view next_word(std::string_view& rest) {
  const auto end = std::min(rest.find(' '), rest.size());
  const auto word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
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
    answer.verdict = what == "retry" ? Verdict::deferred : Verdict::rejected;
  }
  answer.text = rest;
  return answer;
}

}  // namespace mailroom
