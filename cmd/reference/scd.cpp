// Escapes text for scdoc, and guards line beginnings that roff would take for a request.

#include "cmd/reference/scd.hpp"

#include <fmt/format.h>

#include "cmd/reference/reference.hpp"

namespace mailroom::cmd {
namespace {

std::string escaped_inside(std::string_view text) {
  auto result = with_backslashes(text, "\\*_+");
  for (auto& c : result) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return result;
}

}  // namespace

std::string scd_escaped(std::string_view text) {
  // Many characters have a meaning at the beginning of a line, and a backslash before a dot gives a request
  // of roff. An empty bold text avoids both.
  const bool has_meaning =
      !text.empty() && std::string_view("#-.;|[]` \t\n").find(text.front()) != std::string_view::npos;
  return (has_meaning ? "**" : "") + escaped_inside(text);
}

std::string scd_bold(std::string_view text) {
  return "*" + escaped_inside(text) + "*";
}

std::string scd_italic(std::string_view text) {
  return "_" + escaped_inside(text) + "_";
}

std::string scd_link(std::string_view page, int section) {
  return fmt::format("{}({})", scd_bold(page), section);
}

std::string scd_head(std::string_view name, int section, std::string_view summary) {
  return fmt::format("{}({}) \"mailroom {}\" \"mailroom manual\"\n\n", name, section, MAILROOM_VERSION) +
         scd_heading("NAME") + fmt::format("{} - {}\n\n", name, scd_escaped(summary));
}

std::string scd_heading(std::string_view title) {
  return fmt::format("# {}\n\n", title);
}

std::string scd_paragraphs(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto end = std::min(text.find("\n\n"), text.size());
    result += scd_escaped(text.substr(0, end)) + "\n\n";
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return result;
}

std::string scd_verbatim(std::string_view text) {
  return fmt::format("```\n{}{}```\n\n", with_backslashes(text, "\\`"), text.ends_with('\n') ? "" : "\n");
}

std::string scd_item(std::string_view term_scd, const std::vector<std::string>& paragraphs_scd, int depth) {
  const std::string indent(static_cast<std::size_t>(depth), '\t');
  auto result = fmt::format("{}{}\n", indent, term_scd);
  for (const auto& paragraph : paragraphs_scd) {
    if (!paragraph.empty()) result += fmt::format("{}\t{}\n\n", indent, paragraph);
  }
  return result.ends_with("\n\n") ? result : result + "\n";
}

}  // namespace mailroom::cmd
