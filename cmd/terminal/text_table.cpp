// Narrows the column with the most room to spare, and never cuts a number.

#include "cmd/terminal/text_table.hpp"

#include <algorithm>

#include "base/terminal_text.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::size_t gap = 2;

}  // namespace

std::size_t TextTable::widest_cell(std::size_t column) const {
  std::size_t widest = 0;
  for (const auto& row : rows_) {
    if (column < row.size()) widest = std::max(widest, display_width(row[column]));
  }
  return widest;
}

std::size_t TextTable::narrowest(std::size_t column) const {
  constexpr std::size_t shortest_text = 8;
  constexpr std::size_t shortest_title = 4;
  const bool is_cut = columns_[column].align == Align::left && !columns_[column].is_whole;
  return is_cut ? shortest_text : std::max(widest_cell(column), shortest_title);
}

/// Repeatedly narrows the column with the most spare width by one character.
std::vector<std::size_t> TextTable::widths_within(std::size_t width) const {
  std::vector<std::size_t> widths;
  std::vector<std::size_t> spare;
  std::size_t total = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(std::max(widest_cell(i), display_width(columns_[i].title)));
    spare.push_back(widths[i] - std::min(widths[i], narrowest(i)));
    total += widths[i] + (i == 0 ? 0 : gap);
  }
  for (; total > width; --total) {
    const auto most = std::max_element(spare.begin(), spare.end());
    if (most == spare.end() || *most == 0) break;
    --*most;
    --widths[static_cast<std::size_t>(most - spare.begin())];
  }
  return widths;
}

void TextTable::append_line(std::string& text, const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths, std::size_t indent) const {
  std::string line(indent, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto cell = fit(cells[i], widths[i]);
    const std::string padding(widths[i] - std::min(widths[i], display_width(cell)), ' ');
    line += columns_[i].align == Align::right ? padding + cell : cell + padding;
    line += std::string(gap, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
}

std::string TextTable::render(std::size_t width, std::size_t indent) const {
  const auto all = widths_within(width - std::min(width, indent));
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

}  // namespace mailroom::cmd
