#include <filesystem>
#include <set>
#include <sstream>

#include "base/pattern.hpp"
#include "base/terminal_text.hpp"
#include "cmd/command.hpp"
#include "cmd/syntax/command_line.hpp"
#include "cmd/syntax/command_syntax.hpp"
#include "cmd/syntax/subcommand_examples.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::help_test {
namespace {

void check_widths(const CLI::App& app) {
  const auto help = app.help("", CLI::AppFormatMode::Normal);
  for (const auto& line : lines_of(help)) {
    INFO(app.get_name() << " --help: " << line);
    CHECK(display_width(line) <= 80);
    CHECK((line.empty() || line.back() != ' '));
  }
  for (const auto* sub : app.get_subcommands({}))
    check_widths(*sub);
}

/// The list of options of a help text in which `flag` is described by `text`.
std::string options_with(const std::string& flag, const std::string& text) {
  cmd::CommandLine line;
  auto* sub = line.app.add_subcommand("probe", "says nothing")->footer("");
  sub->add_flag(flag)->description(text);
  const auto help = sub->help("", CLI::AppFormatMode::Normal);
  return help.substr(help.find("  -h,--help"));
}

}  // namespace

TEST_CASE("no line of any help text has more than 80 columns") {
  check_widths(cmd::CommandLine().app);
}

TEST_CASE("a long text is wrapped after its option") {
  const std::string words = "word word word word word word word word word word word word word word word";
  CHECK(options_with("--flag", words) ==
        "  -h,--help  show this help\n"
        "  --flag     word word word word word word word word word word word word word\n"
        "             word word\n\n");
}

TEST_CASE("a name that is too long for the column has a line of its own") {
  CHECK(options_with("--a-flag-whose-name-is-very-long-indeed", "why") ==
        "  -h,--help  show this help\n"
        "  --a-flag-whose-name-is-very-long-indeed\n"
        "             why\n\n");
}

TEST_CASE("a word longer than a line has a line of its own") {
  const std::string word(90, 'x');
  CHECK(options_with("--flag", "a " + word + " b") ==
        "  -h,--help  show this help\n"
        "  --flag     a\n"
        "             " +
            word + "\n             b\n\n");
}

TEST_CASE("every help text has two or three examples, each of its own command") {
  const cmd::CommandLine line;
  const auto check = [](const std::string& path, const char* text) {
    INFO("the examples of " << path);
    const auto examples = cmd::parse_examples(text).examples;
    CHECK(examples.size() >= 2);
    CHECK(examples.size() <= 3);
    CHECK(std::string(text).rfind("Examples:\n  ", 0) == 0);
    for (const auto& example : examples) {
      INFO(example.command);
      CHECK((example.command + " ").rfind(path + " ", 0) == 0);
    }
  };
  check("mailroom", cmd::CommandLine().app.get_footer().c_str());
  for (const auto& command : cmd::commands())
    check(std::string("mailroom ") + command.name, command.examples);
  for (const auto* command : line.app.get_subcommands({})) {
    for (const auto* sub : command->get_subcommands({})) {
      const auto path = "mailroom " + command->get_name() + " " + sub->get_name();
      check(path, cmd::subcommand_examples(path).c_str());
      CHECK(sub->get_footer() == cmd::subcommand_examples(path));
    }
  }
}

TEST_CASE("an example is a command and, after two spaces, its purpose") {
  const auto [examples, notes] = cmd::parse_examples(
      "Examples:\n  mailroom a --b c      why one\n  mailroom a\n  mailroom - < file  why another\n\n"
      "A note:\n  of two lines\n");
  REQUIRE(examples.size() == 3);
  CHECK(examples[0].command == "mailroom a --b c");
  CHECK(examples[0].purpose == "why one");
  CHECK(examples[1].command == "mailroom a");
  CHECK(examples[1].purpose.empty());
  CHECK(examples[2].command == "mailroom - < file");
  CHECK(examples[2].purpose == "why another");
  CHECK(notes == "A note:\n  of two lines\n");
  CHECK(cmd::parse_examples("Examples:\n  mailroom a\n").notes.empty());
  CHECK(cmd::parse_examples("").examples.empty());
}

TEST_CASE("a help text begins with the examples and ends with the notes") {
  cmd::CommandLine line;
  auto* sub = line.app.add_subcommand("probe", "says nothing");
  sub->footer("Examples:\n  mailroom probe\n\nA note.\n");
  const auto help = sub->help("", CLI::AppFormatMode::Normal);
  CHECK(help.rfind("Examples:\n  mailroom probe\n\nsays nothing\n\nUsage: mailroom probe", 0) == 0);
  CHECK(help.substr(help.find("  -h,--help")) == "  -h,--help  show this help\n\nA note.\n");
}

TEST_CASE("every command is described for its man page") {
  for (const auto& command : cmd::commands()) {
    INFO("Command::description of " << command.name << " is empty: a few sentences for its man page");
    CHECK(std::string(command.description).size() > 0);
  }
}

namespace {

void collect_options(const CLI::App& app, std::set<std::string>& options) {
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames())
      options.insert("--" + name);
  }
  for (const auto* sub : app.get_subcommands({}))
    collect_options(*sub, options);
}

}  // namespace

TEST_CASE("every option that a message of core names exists") {
  std::set<std::string> options;
  // Those of createdb.
  options.insert({"--template", "--encoding"});
  // Those of NATS' own command.
  options.insert({"--subjects", "--storage", "--replicas", "--retention", "--dupe-window", "--discard",
                  "--max-age", "--no-ack", "--defaults"});
  // Those of rabbitmqctl.
  options.insert({"--if-empty", "--vhost"});
  // The beginning of a line of mails that come back, not an option.
  options.insert("--original");
  collect_options(cmd::CommandLine().app, options);
  const Pattern literal(R"re("(?:[^"\\\n]|\\.)*")re");
  const Pattern option("(^|[ (\"'])(--[a-z][a-z0-9-]+)");
  int checked = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::source_directory + "/core")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
    const auto text = test::read_file(entry.path().string());
    // A literal ends in its line.
    for (const auto& line : lines_of(text)) {
      if (line.find("--") == std::string::npos) continue;
      for (const auto& found : literal.all(line)) {
        const auto& words = found[0];
        INFO(entry.path() << ": " << words);
        for (const auto& name : option.all(words)) {
          CHECK(options.count(name[2]) == 1);
          ++checked;
        }
      }
    }
  }
  CHECK(checked > 15);
}

}  // namespace mailroom::test::help_test
