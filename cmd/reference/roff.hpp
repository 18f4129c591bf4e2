#pragma once

#include <string>
#include <string_view>

namespace mailroom {

/// `text` (UTF-8, newlines as spaces) as roff shows it character by character: what looks like a command, an
/// option or a path can be copied from the page as it is.
std::string roff_escaped(std::string_view text);

std::string roff_bold(std::string_view text);
std::string roff_italic(std::string_view text);

/// A man page in the making, in the macros of man(7).
class ManPage {
 public:
  /// `name` is the page's, as man is asked for it.
  ManPage(std::string_view name, int section, std::string_view version);

  // What is called `roff` is escaped already and may have fonts; `text` is plain.

  void section(std::string_view text);
  void subsection(std::string_view text);
  void paragraph(std::string_view roff);
  /// A paragraph for each part of `text` between empty lines.
  void paragraphs(std::string_view text);
  /// What is explained, and behind it, indented, the explanation.
  void item(std::string_view tag_roff, std::string_view roff);
  /// Whether items have empty lines between them, as they have at first.
  void set_item_distance(bool distance);
  /// One more paragraph of the item above.
  void item_goes_on(std::string_view roff);
  /// Until the matching end all is indented to where the explanation of an item stands.
  void begin_indent();
  void end_indent();
  /// Lines to be shown as they are.
  void verbatim(std::string_view text);
  void line_break();
  void line(std::string_view roff);

  const std::string& text() const { return text_; }

 private:
  /// Behind a heading a new paragraph begins by itself.
  void begin_paragraph();

  std::string text_;
  bool behind_heading_ = false;
};

}  // namespace mailroom
