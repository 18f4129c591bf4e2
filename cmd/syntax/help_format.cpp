// Wraps descriptions in columns, and joins the sections itself, as versions of CLI11 differ.

#include "cmd/syntax/help_format.hpp"

#include <algorithm>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/output.hpp"
#include "base/text.hpp"
#include "cmd/syntax/example.hpp"

namespace mailroom {
namespace {

constexpr std::size_t widest_column = 32;
constexpr std::size_t widest_line = 120;

/// Names and their descriptions.
using List = std::vector<std::pair<std::string, std::string>>;

/// The column at which the descriptions begin: after the longest name that leaves enough room for them. The
/// description of a longer name begins on the next line.
std::size_t text_column(const List& list) {
  std::size_t column = 0;
  for (const auto& [name, text] : list) {
    const auto end = 2 + display_width(name) + 2;
    if (end <= widest_column) column = std::max(column, end);
  }
  return column == 0 ? widest_column : column;
}

std::size_t line_width() {
  return std::min(Output(STDOUT_FILENO).width(), widest_line);
}

std::string render_list(const std::string& title, const List& list) {
  const auto column = text_column(list);
  auto lines = "\n" + title + ":\n";
  for (const auto& [name, text] : list) {
    const auto start = 2 + display_width(name);
    lines += "  " + name;
    if (!text.empty()) {
      lines += start + 2 <= column ? std::string(column - start, ' ') : "\n" + std::string(column, ' ');
      lines += wrapped(text, line_width(), column, column);
    }
    lines += "\n";
  }
  return lines;
}

}  // namespace

ExamplesFirst::ExamplesFirst() {
  label("SUBCOMMAND", "COMMAND");
  label("Positionals", "Arguments");
}

// Joins the parts itself: versions of CLI11's make_help differ in the empty lines between them.
std::string ExamplesFirst::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  const auto footer = app->get_footer();
  const auto end = std::min(footer.find("\n\n"), footer.size());
  auto examples = footer.substr(0, end);
  if (!examples.ends_with('\n')) examples += '\n';
  return examples + "\n" + make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
         make_groups(app, mode) + make_subcommands(app, mode) + "\n" + make_footer(app);
}

std::string ExamplesFirst::make_description(const CLI::App* app) const {
  return wrapped(app->get_description(), line_width(), 0) + "\n";
}

std::string ExamplesFirst::make_usage(const CLI::App* app, std::string /*name*/) const {
  std::string path = app->get_name();
  for (const auto* parent = app->get_parent(); parent != nullptr; parent = parent->get_parent()) {
    path = parent->get_name() + " " + path;
  }
  return "\n" + CLI::Formatter::make_usage(app, path);
}

std::string ExamplesFirst::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  List list;
  for (const auto* option : options) {
    list.emplace_back(make_option_name(option, is_positional) + make_option_opts(option),
                      make_option_desc(option));
  }
  return render_list(group, list);
}

std::string ExamplesFirst::make_subcommands(const CLI::App* app, CLI::AppFormatMode /*mode*/) const {
  List list;
  for (const auto* sub : app->get_subcommands({}))
    list.emplace_back(sub->get_name(), sub->get_description());
  return list.empty() ? "" : render_list("Commands", list);
}

std::string ExamplesFirst::make_option_opts(const CLI::Option* option) const {
  const auto& text = option->get_option_text();
  return text.empty() ? "" : " " + text;
}

std::string ExamplesFirst::make_footer(const CLI::App* app) const {
  return folded(parse_examples(app->get_footer()).notes, line_width());
}

}  // namespace mailroom
