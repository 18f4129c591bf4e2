#include <regex>
#include <sstream>

#include "cmd/reference/man_pages.hpp"
#include "config/settings.hpp"
#include "shell_output.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"

using namespace mailroom;
using namespace mailroom::test;

namespace {

std::string pages() {
  return share_directory + "/man/";
}

std::string page_path(const CommandReference& command) {
  return pages() + "man1/" + std::regex_replace(command.path, std::regex(" "), "-") + ".1";
}

/// The commands that have a page: the program and its direct subcommands.
std::vector<CommandReference> commands_with_pages() {
  const auto program = read_reference();
  auto all = program.commands;
  all.push_back(program);
  return all;
}

/// Removes each character that a backspace follows: bold and underlined characters are typed twice.
std::string without_overstrikes(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c != '\b') {
      plain += c;
      continue;
    }
    const auto is_continuation = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; };
    while (!plain.empty() && is_continuation(plain.back()))
      plain.pop_back();
    if (!plain.empty()) plain.pop_back();
  }
  return plain;
}

/// A rendered page with single spaces only, so that line breaks do not matter.
std::string shown(const std::string& path) {
  const TemporaryDirectory directory;
  const auto answer = run_shell("mandoc -T utf8 '" + path + "'", directory);
  INFO(answer.err);
  REQUIRE(answer.status == 0);
  return std::regex_replace(without_overstrikes(answer.out), std::regex("\\s+"), " ");
}

void check_shown(const std::string& page, const std::string& text) {
  INFO("looking for: " << text);
  CHECK(page.find(std::regex_replace(text, std::regex("\\s+"), " ")) != std::string::npos);
}

void check_arguments_shown(const std::string& page, const CommandReference& command) {
  for (const auto& option : command.options) {
    for (const auto& name : option.names)
      check_shown(page, name);
    check_shown(page, option.help);
    if (option.key != nullptr) check_shown(page, std::string(option.key->key));
  }
  for (const auto& operand : command.operands)
    check_shown(page, operand.value.name + " " + operand.help);
}

}  // namespace

TEST_CASE("every command has a page, and there is no other page") {
  std::size_t expected = 1;
  CHECK(std::filesystem::exists(pages() + "man5/mailroom.yaml.5"));
  for (const auto& command : commands_with_pages()) {
    INFO(page_path(command));
    CHECK(std::filesystem::exists(page_path(command)));
    ++expected;
  }
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(pages())) {
    if (entry.is_regular_file()) ++found;
  }
  CHECK(found == expected);
}

TEST_CASE("mandoc reports nothing about the pages but the missing date") {
  const TemporaryDirectory directory;
  const auto answer = run_shell("mandoc -T lint -W warning " + pages() + "man?/*", directory);
  std::istringstream lines(answer.out + answer.err);
  std::size_t dates = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("missing date, using \"\": TH") != std::string::npos) {
      ++dates;
    } else {
      FAIL_CHECK(line);
    }
  }
  CHECK(dates == commands_with_pages().size() + 1);
}

TEST_CASE("the page of a command shows the whole help text, character by character") {
  for (const auto& command : commands_with_pages()) {
    const auto page = shown(page_path(command));
    INFO(page_path(command));
    check_shown(page, "NAME " + std::regex_replace(command.path, std::regex(" "), "-"));
    for (const char* heading :
         {"SYNOPSIS", "DESCRIPTION", "EXAMPLES", "GLOBAL OPTIONS", "EXIT STATUS", "SEE ALSO"})
      check_shown(page, heading);
    check_shown(page, command.description);
    CHECK(!command.description.empty());
    for (const auto& example : command.examples.examples)
      check_shown(page, example.command);
    check_shown(page, command.examples.notes);
    for (const auto* part : flatten(command)) {
      if (part != &command && command.path == "mailroom") continue;
      if (part != &command) check_shown(page, part->name + " " + part->summary);
      check_arguments_shown(page, *part);
    }
  }
}

TEST_CASE("the main page names every command, key, variable and exit status") {
  const auto program = read_reference();
  const auto page = shown(page_path(program));
  for (const auto& command : program.commands)
    check_shown(page, "mailroom-" + command.name + "(1) " + command.summary);
  for (const auto& key : key_table()) {
    check_shown(page, std::string(key.key) + " (" + std::string(key.environment));
    check_shown(page, std::string(key.meaning));
  }
  for (const char* text : {"CONFIGURATION", "MAILROOM_CONFIG", "NO_COLOR", "/etc/mailroom/mailroom.yaml",
                           "10 the output was closed", "130, 143 stopped at once"})
    check_shown(page, text);
}

TEST_CASE("the page of the configuration describes every key, and its example is valid") {
  const auto page = shown(pages() + "man5/mailroom.yaml.5");
  for (const auto& key : key_table()) {
    const std::string name(key.key.substr(key.key.find('.') + 1));
    check_shown(page, name + " " + std::string(key.meaning));
    if (!key.default_text.empty()) check_shown(page, "default: " + std::string(key.default_text));
    if (!key.environment.empty()) check_shown(page, "variable: " + std::string(key.environment));
  }
  check_shown(page, example_configuration);
  const WorkingDirectory directory;
  directory.write("mailroom.yaml", example_configuration);
  const auto settings = load_settings({}, {});
  CHECK(settings.batch_limit == 100);
  CHECK(settings.log_format == LogFormat::logfmt);
  CHECK(settings.previous_keys.size() == 1);
}
