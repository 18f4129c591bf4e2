#include "transcript.hpp"

#include <algorithm>
#include <stdexcept>

namespace mailroom::golden {
namespace {

constexpr std::string_view no_newline = "\\ no newline at the end";

bool is_command(std::string_view line) {
  return line.starts_with("$ ");
}

bool is_comment(std::string_view line) {
  return line == "#" || line.starts_with("# ") || line.starts_with("#:");
}

/// Whether a line of stdout would be read as something else.
bool needs_escape(std::string_view line) {
  return is_command(line) || is_comment(line) || line == "!" || line.starts_with("! ") ||
         line.starts_with("? ") || line.starts_with("\\");
}

/// Splits into lines without their newlines; `complete` says whether the last one had its own.
Lines split(std::string_view text, bool& complete) {
  Lines lines;
  complete = text.empty() || text.back() == '\n';
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

[[noreturn]] void fail(std::size_t line, const std::string& message) {
  throw std::runtime_error("line " + std::to_string(line) + ": " + message);
}

/// Empty lines below an output only set it apart from what follows.
void move_trailing_empty_lines(Lines& from, Lines& to) {
  auto last = std::find_if(from.rbegin(), from.rend(), [](const auto& line) { return !line.empty(); });
  to.insert(to.begin(), last.base(), from.end());
  from.erase(last.base(), from.end());
}

void append(std::string& text, const Lines& lines) {
  for (const auto& line : lines)
    text.append(line).append("\n");
}

}  // namespace

Transcript parse(std::string_view text) {
  bool complete = true;
  const Lines lines = split(text, complete);
  Transcript result;
  Lines between;
  bool in_output = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (in_output && (is_command(line) || is_comment(line))) {
      move_trailing_empty_lines(result.steps.back().expected, between);
      in_output = false;
    }
    if (is_command(line)) {
      Step step;
      step.line = i + 1;
      step.before.swap(between);
      step.command.push_back(line);
      while (step.command.back().ends_with('\\') && i + 1 < lines.size())
        step.command.push_back(lines[++i]);
      result.steps.push_back(std::move(step));
      in_output = true;
    } else if (in_output) {
      result.steps.back().expected.push_back(line);
    } else if (line.empty() || is_comment(line)) {
      if (line == "#: database") {
        result.database = true;
      } else if (line.starts_with("#:")) {
        fail(i + 1, "unknown directive: " + line);
      }
      between.push_back(line);
    } else {
      fail(i + 1, "neither a comment nor a command, and below no command: " + line);
    }
  }
  if (in_output) move_trailing_empty_lines(result.steps.back().expected, between);
  result.after = std::move(between);
  return result;
}

std::string write(const Transcript& transcript) {
  std::string text;
  for (const auto& step : transcript.steps) {
    append(text, step.before);
    append(text, step.command);
    append(text, step.expected);
  }
  append(text, transcript.after);
  return text;
}

std::string shell_text(const Step& step) {
  std::string text;
  append(text, step.command);
  return text.substr(2, text.size() - 3);
}

Lines show(const Result& result) {
  bool complete = true;
  Lines shown;
  for (const auto& line : split(result.out, complete)) {
    shown.push_back(needs_escape(line) ? "\\" + line : line);
  }
  if (!complete) shown.emplace_back(no_newline);
  for (const auto& line : split(result.err, complete)) {
    shown.push_back(line.empty() ? "!" : line.starts_with("\\") ? "! \\" + line : "! " + line);
  }
  if (!complete) shown.push_back("! " + std::string(no_newline));
  if (result.status != 0) shown.push_back("? " + std::to_string(result.status));
  if (!shown.empty() && shown.back().empty()) shown.back() = "\\";
  return shown;
}

Lines difference(const Lines& expected, const Lines& actual) {
  // common[i][j]: the most lines that the rest of both, from i and from j on, have in common in order.
  std::vector<std::vector<std::size_t>> common(expected.size() + 1,
                                               std::vector<std::size_t>(actual.size() + 1, 0));
  for (std::size_t i = expected.size(); i-- > 0;) {
    for (std::size_t j = actual.size(); j-- > 0;) {
      common[i][j] =
          expected[i] == actual[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  Lines lines;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < expected.size() || j < actual.size()) {
    const bool both = i < expected.size() && j < actual.size();
    if (both && expected[i] == actual[j]) {
      lines.push_back("  " + expected[i++]);
      ++j;
    } else if (j == actual.size() || (both && common[i + 1][j] >= common[i][j + 1])) {
      lines.push_back("- " + expected[i++]);
    } else {
      lines.push_back("+ " + actual[j++]);
    }
  }
  return lines;
}

}  // namespace mailroom::golden
