// Lays out findings in columns, and removes tokens that were typed in the wrong place.

#include "cmd/doctor/doctor_report.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "base/terminal_text.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::size_t gap = 2;

/// Removes secrets: a token may have been typed in the wrong place.
std::string shown(const std::string& text) {
  return shown_text(without_secrets(text));
}

struct Widths {
  std::size_t verdict = 7;  ///< fits `warning` and `failure`; only `not checked` is wider
  std::size_t check = 0;
};

/// Green, yellow, red, and dim for a check that was not made.
const char* colour_of(doctor::CheckVerdict verdict) {
  constexpr std::array<const char*, 4> colours{"\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[2m"};
  return colours.at(static_cast<std::size_t>(verdict));
}

std::string render_finding(const doctor::Finding& finding, const Widths& widths, const DoctorStyle& style) {
  const std::string word = doctor::verdict_word(finding.verdict);
  const auto fix_indent = widths.verdict + gap;
  const auto reason_indent = fix_indent + widths.check + gap;
  auto text = fmt::format("{}{}{}{}{:<{}}{}\n", style.colour ? colour_of(finding.verdict) : "", word,
                          style.colour ? "\x1b[0m" : "", std::string(fix_indent - word.size(), ' '),
                          finding.check, widths.check + gap,
                          wrapped(shown(finding.reason), style.width, reason_indent, reason_indent));
  if (!finding.hint.empty()) {
    const std::string label = "hint: ";
    const auto hint_indent = fix_indent + label.size();
    text += fmt::format("{}{}{}\n", std::string(fix_indent, ' '), label,
                        wrapped(shown(finding.hint), style.width, hint_indent, hint_indent));
  }
  for (const auto& command : finding.fix)
    text += fmt::format("{}fix: {}\n", std::string(fix_indent, ' '), printable(without_secrets(command)));
  return text;
}

std::int64_t count_of(const doctor::Findings& findings, doctor::CheckVerdict verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const doctor::Finding& finding) { return finding.verdict == verdict; });
}

std::string render_sum(const doctor::Findings& findings) {
  std::string sum = fmt::format("{} ok", count_of(findings, doctor::CheckVerdict::ok));
  const auto add = [&](doctor::CheckVerdict verdict, const char* one, const char* many) {
    const auto count = count_of(findings, verdict);
    if (count > 0) sum += fmt::format(", {} {}", count, count == 1 ? one : many);
  };
  add(doctor::CheckVerdict::warning, "warning", "warnings");
  add(doctor::CheckVerdict::failure, "failure", "failures");
  add(doctor::CheckVerdict::not_checked, "not checked", "not checked");
  return sum + "\n";
}

}  // namespace

std::string render_text(const doctor::Findings& findings, const DoctorStyle& style) {
  Widths widths;
  for (const auto& finding : findings) {
    widths.verdict = std::max(widths.verdict, std::string_view(doctor::verdict_word(finding.verdict)).size());
    widths.check = std::max(widths.check, finding.check.size());
  }
  std::string text;
  for (const auto& finding : findings)
    text += render_finding(finding, widths, style);
  return text + render_sum(findings);
}

std::string render_json(const doctor::Findings& findings) {
  auto checks = nlohmann::ordered_json::array();
  for (const auto& finding : findings) {
    auto fix = nlohmann::ordered_json::array();
    for (const auto& command : finding.fix)
      fix.push_back(without_secrets(command));
    checks.push_back({{"name", finding.check},
                      {"verdict", doctor::verdict_word(finding.verdict)},
                      {"reason", without_secrets(finding.reason)},
                      {"hint", without_secrets(finding.hint)},
                      {"fix", std::move(fix)}});
  }
  const nlohmann::ordered_json object{{"checks", std::move(checks)},
                                      {"ok", count_of(findings, doctor::CheckVerdict::ok)},
                                      {"warnings", count_of(findings, doctor::CheckVerdict::warning)},
                                      {"failures", count_of(findings, doctor::CheckVerdict::failure)},
                                      {"not_checked", count_of(findings, doctor::CheckVerdict::not_checked)}};
  return json_text(object) + "\n";
}

}  // namespace mailroom::cmd
