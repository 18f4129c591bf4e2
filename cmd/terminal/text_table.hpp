// Tables of text that fit the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mailroom::cmd {

/// Rows in aligned columns, separated by two spaces, without trailing spaces.
class TextTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;  ///< in the heading, which is omitted if no column has a title
    Align align = Align::left;
    bool is_whole = false;  ///< its cells are not truncated
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row of at most as many cells as there are columns. Cells must not contain newlines.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  /// The heading and the rows, each line indented by `indent` spaces. If they are wider than `width`, text
  /// cells and titles are truncated; numbers are not.
  std::string render(std::size_t width, std::size_t indent = 0) const;

 private:
  std::size_t widest_cell(std::size_t column) const;
  std::size_t narrowest(std::size_t column) const;
  std::vector<std::size_t> widths_within(std::size_t width) const;
  void append_line(std::string& text, const std::vector<std::string>& cells,
                   const std::vector<std::size_t>& widths, std::size_t indent) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace mailroom::cmd
