// Lines that hold a tag alone are left out as the specification of Mustache says. Counts its steps, since a
// list within itself multiplies.

#include "templates/template_program.hpp"

#include <fmt/format.h>
#include <optional>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"

namespace mailroom::templates {
namespace {

using Kind = TemplateTag::Kind;
using DataKind = TemplateData::Kind;

constexpr std::size_t most_steps = 1'000'000;

/// The part of a template that a tag takes up.
struct Extent {
  std::size_t begin = 0;
  std::size_t end = 0;
};

bool stands_alone(Kind kind) {
  return kind == Kind::section || kind == Kind::inverted || kind == Kind::end || kind == Kind::comment;
}

/// The tag, or its whole line with the line end where nothing else is in that and the tag shows nothing.
Extent extent_of(std::string_view text, const TemplateTag& tag) {
  constexpr std::string_view blanks = " \t";
  const Extent alone{tag.position, tag.position + tag.size};
  if (!stands_alone(tag.kind)) return alone;
  const auto line = text.rfind('\n', tag.position) + 1;  // npos + 1 is 0
  if (text.substr(line, tag.position - line).find_first_not_of(blanks) != text.npos) return alone;
  const auto after = text.find_first_not_of(blanks, alone.end);
  if (after == text.npos) return {line, text.size()};
  if (text[after] == '\n') return {line, after + 1};
  return text.substr(after).starts_with("\r\n") ? Extent{line, after + 2} : alone;
}

std::string_view kind_words(DataKind kind) {
  return kind == DataKind::list ? "a list" : "an object";
}

/// The member `name` of the innermost object that has it; null if none has.
const TemplateData* find_in(const std::vector<const TemplateData*>& stack, std::string_view name) {
  for (auto level = stack.rbegin(); level != stack.rend(); ++level) {
    const auto found = (*level)->members.find(name);
    if (found != (*level)->members.end()) return &found->second;
  }
  return nullptr;
}

/// What `name` means, `.` or dotted; null if nothing has it.
const TemplateData* find(const std::vector<const TemplateData*>& stack, const std::string& name) {
  if (name == ".") return stack.back();
  const auto names = split(name, '.');
  const auto* value = find_in(stack, names.front());
  for (std::size_t i = 1; value != nullptr && i < names.size(); ++i)
    value = find_in({value}, names[i]);
  return value;
}

/// All names that could have been meant where the last one is wrong.
std::vector<std::string> names_within(const std::vector<const TemplateData*>& stack) {
  constexpr std::size_t most = 1000;
  std::vector<std::string> names;
  for (const auto* level : stack) {
    for (const auto& [name, value] : level->members) {
      if (names.size() < most) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

/// One rendering. Throws Refusal.
class TemplateRun {
 public:
  TemplateRun(const TemplateData& data, const TemplateProgram::Options& options)
      : options_(options), stack_{&data} {}

  std::string take() { return std::move(out_); }

  void run(const TemplateProgram& program, std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end;) {
      const auto& step = program.steps_[i];
      count(program, step);
      const bool is_section = step.kind == StepKind::section || step.kind == StepKind::inverted;
      if (is_section) {
        run_section(program, i);
      } else {
        run_step(program, step);
      }
      i = is_section ? step.end : i + 1;
    }
  }

 private:
  using StepKind = TemplateProgram::Step::Kind;

  [[noreturn]] static void refuse(const TemplateProgram& program, const TemplateProgram::Step& step,
                                  const std::string& reason) {
    throw mail::Refusal{fmt::format("{}:{}: {}", shown_text(program.file_), step.line, reason)};
  }

  void count(const TemplateProgram& program, const TemplateProgram::Step& step) {
    if (++steps_ > most_steps)
      refuse(program, step, fmt::format("it takes more than {} steps", with_thousands(most_steps)));
  }

  void append(const TemplateProgram& program, const TemplateProgram::Step& step, std::string_view text) {
    if (text.size() > options_.largest - out_.size())
      refuse(program, step,
             fmt::format("the text becomes larger than {} bytes",
                         with_thousands(static_cast<std::int64_t>(options_.largest))));
    out_ += text;
  }

  const TemplateData& value_of(const TemplateProgram& program, const TemplateProgram::Step& step) const {
    if (const auto* value = find(stack_, step.text)) return *value;
    const auto meant = nearest_word(step.text, names_within(stack_));
    refuse(program, step,
           fmt::format("neither the data nor mailroom has {{{{{}}}}}{}", shown_text(step.text),
                       meant.empty() ? "" : fmt::format("; did you mean {{{{{}}}}}?", shown_text(meant))));
  }

  void run_step(const TemplateProgram& program, const TemplateProgram::Step& step) {
    if (step.kind == StepKind::text) return append(program, step, step.text);
    if (step.kind == StepKind::partial) {
      const auto& partial = options_.partial(step.text);
      return run(partial, 0, partial.steps_.size());
    }
    const auto& value = value_of(program, step);
    if (value.kind == DataKind::list || value.kind == DataKind::object)
      refuse(program, step,
             fmt::format("{{{{{}}}}} is {}, which has no text of its own", shown_text(step.text),
                         kind_words(value.kind)));
    const bool is_escaped =
        step.kind == StepKind::variable && options_.escape == TemplateProgram::Escape::html;
    append(program, step, is_escaped ? escaped_html(value.text) : value.text);
  }

  void run_section(const TemplateProgram& program, std::size_t at) {
    const auto& step = program.steps_[at];
    const auto& value = value_of(program, step);
    if (step.kind == StepKind::inverted) {
      if (!value.is_true()) run(program, at + 1, step.end);
    } else if (value.kind == DataKind::list) {
      for (const auto& item : value.items)
        run_with(item, program, at);
    } else if (value.is_true()) {
      run_with(value, program, at);
    }
  }

  void run_with(const TemplateData& value, const TemplateProgram& program, std::size_t at) {
    count(program, program.steps_[at]);
    stack_.push_back(&value);
    run(program, at + 1, program.steps_[at].end);
    stack_.pop_back();
  }

  const TemplateProgram::Options& options_;
  std::vector<const TemplateData*> stack_;  ///< the objects that names are looked up in, innermost last
  std::string out_;
  std::size_t steps_ = 0;
};

TemplateProgram::TemplateProgram(std::string file, std::string_view text,
                                 const std::vector<TemplateTag>& tags)
    : file_(std::move(file)) {
  using StepKind = Step::Kind;
  std::vector<std::size_t> open;
  std::size_t at = 0;
  LineCounter lines(text);
  for (const auto& tag : tags) {
    const auto extent = extent_of(text, tag);
    add_text(text.substr(at, extent.begin - at), lines.line_of(at));
    at = extent.end;
    if (tag.kind == Kind::end) {
      steps_[open.back()].end = steps_.size();
      open.pop_back();
    }
    if (tag.kind == Kind::end || tag.kind == Kind::comment) continue;
    const bool is_section = tag.kind == Kind::section || tag.kind == Kind::inverted;
    if (is_section) open.push_back(steps_.size());
    const auto kind = tag.kind == Kind::variable    ? StepKind::variable
                      : tag.kind == Kind::unescaped ? StepKind::unescaped
                      : tag.kind == Kind::section   ? StepKind::section
                      : tag.kind == Kind::inverted  ? StepKind::inverted
                                                    : StepKind::partial;
    steps_.push_back({.kind = kind, .text = tag.name, .line = lines.line_of(tag.position)});
  }
  add_text(text.substr(at), lines.line_of(at));
}

void TemplateProgram::add_text(std::string_view text, std::size_t line) {
  if (!text.empty()) steps_.push_back({.kind = Step::Kind::text, .text = std::string(text), .line = line});
}

std::variant<std::string, mail::Refusal> TemplateProgram::render(const TemplateData& data,
                                                                 const Options& options) const {
  TemplateRun run(data, options);
  try {
    run.run(*this, 0, steps_.size());
  } catch (mail::Refusal& refusal) {
    return std::move(refusal);
  }
  return run.take();
}

std::string escaped_html(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace mailroom::templates
