#include "cmd/reference/roff.hpp"

#include <cctype>
#include <fmt/format.h>

namespace mailroom {
namespace {

/// The escape sequence for a character that roff would change or drop; empty for others.
std::string_view replacement(char c) {
  switch (c) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";
    case '\'':
      return "\\(aq";
    case '"':
      return "\\(dq";
    case '`':
      return "\\(ga";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    case '\n':
      return " ";
    default:
      return {};
  }
}

/// Removes and returns the first character of `text`, which is well-formed UTF-8.
char32_t take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t character = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length && i < text.size(); ++i)
    character = (character << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  text.remove_prefix(std::min(length, text.size()));
  return character;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (auto& c : result)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::string roff_escaped(std::string_view text) {
  // A dot at the beginning of a line would be a request.
  std::string result = text.starts_with('.') ? "\\&" : "";
  while (!text.empty()) {
    const auto character = take_character(text);
    if (character >= 0x80) {
      result += fmt::format("\\[u{:04X}]", static_cast<unsigned>(character));
    } else {
      const auto c = static_cast<char>(character);
      const auto instead = replacement(c);
      result += instead.empty() ? std::string_view(&c, 1) : instead;
    }
  }
  return result;
}

std::string roff_bold(std::string_view text) {
  return "\\fB" + roff_escaped(text) + "\\fR";
}

std::string roff_italic(std::string_view text) {
  return "\\fI" + roff_escaped(text) + "\\fR";
}

// The page has no date, so that builds are reproducible.
ManPage::ManPage(std::string_view name, int section, std::string_view version)
    : text_(fmt::format(
          ".\\\" Generated from the command-line definitions.\n.TH \"{}\" \"{}\" \"\" \"mailroom {}\" "
          "\"mailroom manual\"\n.nh\n.ad l\n",
          roff_escaped(upper(name)), section, roff_escaped(version))) {}

void ManPage::section(std::string_view text) {
  text_ += fmt::format(".SH \"{}\"\n", roff_escaped(text));
  behind_heading_ = true;
}

void ManPage::subsection(std::string_view text) {
  text_ += fmt::format(".SS \"{}\"\n", roff_escaped(text));
  behind_heading_ = true;
}

void ManPage::paragraph(std::string_view roff) {
  begin_paragraph();
  line(roff);
}

void ManPage::paragraphs(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find("\n\n"), text.size());
    paragraph(roff_escaped(text.substr(0, end)));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
}

void ManPage::item(std::string_view tag_roff, std::string_view roff) {
  text_ += fmt::format(".TP\n{}\n{}\n", tag_roff, roff.empty() ? "\\&" : roff);
  behind_heading_ = false;
}

void ManPage::item_goes_on(std::string_view roff) {
  text_ += fmt::format(".IP\n{}\n", roff);
}

void ManPage::begin_indent() {
  text_ += ".RS\n";
}

void ManPage::end_indent() {
  text_ += ".RE\n";
}

void ManPage::verbatim(std::string_view text) {
  begin_paragraph();
  text_ += ".RS 4\n.nf\n";
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    text_ += roff_escaped(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  text_ += ".fi\n.RE\n";
}

void ManPage::set_item_distance(bool distance) {
  text_ += distance ? ".PD\n" : ".PD 0\n";
}

void ManPage::line_break() {
  text_ += ".br\n";
}

void ManPage::line(std::string_view roff) {
  text_ += fmt::format("{}\n", roff);
  behind_heading_ = false;
}

void ManPage::begin_paragraph() {
  if (!behind_heading_) text_ += ".PP\n";
  behind_heading_ = false;
}

}  // namespace mailroom
