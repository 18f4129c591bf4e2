#include "cmd/text_table.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mailroom {

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths;
  for (const auto& column : columns_)
    widths.push_back(display_width(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  }
  return widths;
}

void TextTable::append_line(std::string& text, const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths, std::size_t indent) const {
  std::string line(indent, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - display_width(cells[i]), ' ');
    line += columns_[i].align == Align::right ? padding + cells[i] : cells[i] + padding;
    line += "  ";
  }
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
}

std::string TextTable::render(std::size_t indent) const {
  const auto all = widths();
  std::string text;
  std::vector<std::string> titles;
  for (const auto& column : columns_)
    titles.push_back(column.title);
  const bool titled = std::any_of(titles.begin(), titles.end(), [](const auto& t) { return !t.empty(); });
  if (titled) append_line(text, titles, all, indent);
  for (const auto& row : rows_)
    append_line(text, row, all, indent);
  return text;
}

}  // namespace mailroom
