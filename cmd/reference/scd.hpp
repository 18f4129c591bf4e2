// Writes the markup of man pages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom::cmd {

// Parts of a page in the language of scdoc(5). `text` is plain UTF-8; `scd` is escaped already and may
// contain fonts.

/// Escapes `text` so that scdoc shows every character as it is. Newlines and tabs become spaces.
std::string scd_escaped(std::string_view text);

std::string scd_bold(std::string_view text);
std::string scd_italic(std::string_view text);
/// `mailroom.yaml(5)`
std::string scd_link(std::string_view page, int section);

/// The beginning of a page, up to and including NAME.
std::string scd_head(std::string_view name, int section, std::string_view summary);
std::string scd_heading(std::string_view title);
/// A paragraph for each part of `text` between empty lines.
std::string scd_paragraphs(std::string_view text);
/// Shows lines as they are.
std::string scd_verbatim(std::string_view text);
/// A term and its explanation, indented by `depth` more. Drops empty paragraphs.
std::string scd_item(std::string_view term_scd, const std::vector<std::string>& paragraphs_scd,
                     int depth = 0);

}  // namespace mailroom::cmd
