#pragma once

#include <string>
#include <string_view>

namespace mailroom {

/// Escapes `text` (UTF-8) so that roff shows every character as it is, and commands, options and paths can be
/// copied from the page. Newlines become spaces.
std::string roff_escaped(std::string_view text);

std::string roff_bold(std::string_view text);
std::string roff_italic(std::string_view text);

/// Builds a man page with the macros of man(7).
class ManPage {
 public:
  /// `name` is the name of the page, as given to man.
  ManPage(std::string_view name, int section, std::string_view version);

  // Parameters named `roff` are escaped already and may contain fonts; `text` is plain.

  void section(std::string_view text);
  void subsection(std::string_view text);
  void paragraph(std::string_view roff);
  /// A paragraph for each part of `text` between empty lines.
  void paragraphs(std::string_view text);
  /// A term, followed by an indented explanation.
  void item(std::string_view tag_roff, std::string_view roff);
  /// Whether items are separated by empty lines; initially true.
  void set_item_distance(bool distance);
  /// Adds a paragraph to the last item.
  void item_goes_on(std::string_view roff);
  /// Indents everything up to the matching end_indent() like the explanation of an item.
  void begin_indent();
  void end_indent();
  /// Shows lines as they are.
  void verbatim(std::string_view text);
  void line_break();
  void line(std::string_view roff);

  const std::string& text() const { return text_; }

 private:
  /// Adds a paragraph macro, except after a heading.
  void begin_paragraph();

  std::string text_;
  bool behind_heading_ = false;
};

}  // namespace mailroom
