#include "cmd/help_format.hpp"

namespace mailroom {

std::string ExamplesFirst::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return app->get_footer() + "\n" + CLI::Formatter::make_help(app, std::move(name), mode);
}

std::string ExamplesFirst::make_usage(const CLI::App* app, std::string /*name*/) const {
  std::string path = app->get_name();
  for (const auto* parent = app->get_parent(); parent != nullptr; parent = parent->get_parent()) {
    path = parent->get_name() + " " + path;
  }
  return "\n" + CLI::Formatter::make_usage(app, path);
}

std::string ExamplesFirst::make_option_opts(const CLI::Option* option) const {
  const auto& text = option->get_option_text();
  return text.empty() ? "" : " " + text;
}

std::string ExamplesFirst::make_footer(const CLI::App* /*app*/) const {
  return "";
}

}  // namespace mailroom
