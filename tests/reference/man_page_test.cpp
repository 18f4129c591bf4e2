#include <sstream>

#include "base/pattern.hpp"
#include "base/printable.hpp"
#include "cmd/reference/generated_files.hpp"
#include "config/settings.hpp"
#include "shell_output.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"

namespace mailroom::test::man_page_test {
namespace {

std::string pages() {
  return share_directory + "/man/";
}

std::string page_path(const cmd::CommandReference& command) {
  return pages() + "man1/" + Pattern(" ").replaced(command.path, "-") + ".1";
}

/// The commands that have a page: the program and its direct subcommands.
std::vector<cmd::CommandReference> commands_with_pages() {
  const auto program = cmd::read_reference();
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
  return Pattern("\\s+").replaced(without_overstrikes(answer.out), " ");
}

void check_shown(const std::string& page, const std::string& text) {
  INFO("looking for: " << text);
  CHECK(page.find(Pattern("\\s+").replaced(text, " ")) != std::string::npos);
}

void check_arguments_shown(const std::string& page, const cmd::CommandReference& command) {
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

TEST_CASE("mandoc and groff report nothing about the pages, at any width") {
  const TemporaryDirectory directory;
  const auto lint = run_shell("mandoc -T lint -W error " + pages() + "man?/*", directory);
  CHECK(lint.out + lint.err == "");
  for (const std::size_t width : {60U, 80U, 120U}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(pages())) {
      if (!entry.is_regular_file()) continue;
      INFO(entry.path() << " at " << width << " columns");
      const auto columns = std::to_string(width) + "n";
      const auto page = run_shell("groff -ww -k -man -T utf8 -P-cbou -rLL=" + columns + " -rLT=" + columns +
                                      " '" + entry.path().string() + "'",
                                  directory);
      CHECK(page.status == 0);
      CHECK(page.err == "");
      // No word is hyphenated, and none is broken at a hyphen, as an option would be.
      CHECK(page.out.find("-\n") == std::string::npos);
      CHECK(page.out.find("\xE2\x80\x90") == std::string::npos);
    }
  }
}

TEST_CASE("the pages have no date, so that builds are reproducible") {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(pages())) {
    if (!entry.is_regular_file()) continue;
    const auto name = entry.path().stem().string();
    const auto section = entry.path().extension().string().substr(1);
    CHECK(read_file(entry.path().string())
              .find(".TH \"" + name + "\" \"" + section +
                    "\" \"\" \"mailroom " MAILROOM_VERSION "\" \"mailroom manual\"\n") != std::string::npos);
  }
}

TEST_CASE("the page of a command shows the whole help text, character by character") {
  for (const auto& command : commands_with_pages()) {
    const auto page = shown(page_path(command));
    INFO(page_path(command));
    check_shown(page, "NAME " + Pattern(" ").replaced(command.path, "-"));
    for (const char* heading :
         {"SYNOPSIS", "DESCRIPTION", "EXAMPLES", "GLOBAL OPTIONS", "EXIT STATUS", "SEE ALSO"})
      check_shown(page, heading);
    check_shown(page, command.description);
    CHECK(!command.description.empty());
    for (const auto& example : command.examples.examples)
      check_shown(page, example.command);
    check_shown(page, command.examples.notes);
    for (const auto& place : cmd::places_of(command)) {
      if (place.command != &command && command.path == "mailroom") continue;
      if (place.command != &command) check_shown(page, place.command->name + " " + place.command->summary);
      check_arguments_shown(page, *place.command);
    }
  }
}

TEST_CASE("the main page names every command, key, variable and exit status") {
  const auto program = cmd::read_reference();
  const auto page = shown(page_path(program));
  for (const auto& command : program.commands)
    check_shown(page, "mailroom-" + command.name + "(1) " + command.summary);
  for (const auto& key : config::key_table()) {
    check_shown(page, std::string(key.key) + " (" + std::string(key.environment));
    check_shown(page, std::string(key.meaning));
  }
  for (const char* text : {"CONFIGURATION", "MAILROOM_CONFIG", "NO_COLOR", "/etc/mailroom/mailroom.yaml",
                           "10 the output was closed", "130, 143 stopped by SIGINT or SIGTERM"})
    check_shown(page, text);
}

TEST_CASE("the page of the configuration describes every key, and its example is valid") {
  const auto page = shown(pages() + "man5/mailroom.yaml.5");
  for (const auto& key : config::key_table()) {
    const std::string name(key.key.substr(key.key.find('.') + 1));
    check_shown(page, name + " " + std::string(key.meaning));
    if (!key.default_text.empty()) check_shown(page, "default: " + std::string(key.default_text));
    if (!key.environment.empty()) check_shown(page, "variable: " + std::string(key.environment));
  }
  check_shown(page, cmd::example_configuration);
  const WorkingDirectory directory;
  directory.write("mailroom.yaml", cmd::example_configuration);
  const auto settings = config::load_settings({}, {});
  CHECK(settings.collect.batch_limit.max == 100);
  CHECK(settings.log.format == LogFormat::logfmt);
  CHECK(settings.signing.previous_keys.size() == 1);
}

}  // namespace mailroom::test::man_page_test
