// Compares what the shells offer with what the command line accepts. Each shell completes all lines in one
// run.

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "cmd/reference/reference.hpp"
#include "shell_output.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"

namespace mailroom::test::completion_test {
namespace {

using WordSet = std::set<std::string>;

/// A line with the cursor at its end, and what may follow there.
using Expectations = std::map<std::string, WordSet>;

const WordSet files{"keys", "mailroom.yaml", "signing.key"};

WordSet values_of(const cmd::ValueReference& value) {
  switch (value.kind) {
    case cmd::ValueReference::Kind::choice:
      return {value.choices.begin(), value.choices.end()};
    case cmd::ValueReference::Kind::file:
      return files;
    case cmd::ValueReference::Kind::directory:
      return {"keys"};
    default:
      return {};
  }
}

WordSet names_of(const std::vector<cmd::CommandReference>& commands) {
  WordSet names;
  for (const auto& command : commands)
    names.insert(command.name);
  return names;
}

WordSet long_names(const cmd::CommandReference& program, const cmd::Place& place) {
  WordSet names;
  const auto add = [&names](const cmd::OptionReference& option) {
    for (const auto& name : option.names) {
      if (name.rfind("--", 0) == 0) names.insert(name);
    }
  };
  for (const auto& option : program.options)
    add(option);
  for (const auto& option : place.options)
    add(option);
  return names;
}

WordSet beginning_with(const std::string& start, const WordSet& words) {
  WordSet found;
  std::copy_if(words.begin(), words.end(), std::inserter(found, found.end()),
               [&](const auto& word) { return word.rfind(start, 0) == 0; });
  return found;
}

void expect_values(const std::string& path, const cmd::OptionReference& option, Expectations& expected) {
  const auto values = values_of(option.value);
  if (option.value.kind == cmd::ValueReference::Kind::none || option.value.optional) return;
  for (const auto& name : option.names) {
    const bool is_long = name.rfind("--", 0) == 0;
    expected[path + " " + name + " "] = values;
    if (is_long) expected[path + " " + name + "="] = values;
    for (const auto& value : values) {
      const auto start = value.substr(0, 1);
      expected[path + " " + name + " " + start] = beginning_with(start, values);
      if (is_long) expected[path + " " + name + "=" + start] = beginning_with(start, values);
    }
  }
}

/// Places where a command is expected, also after options that take a value, and lines where the command's
/// name is that value.
void expect_commands(const cmd::Place& place, Expectations& expected) {
  const auto names = names_of(place.command->commands);
  if (names.empty()) return;
  const auto& path = place.command->path;
  for (const std::string options :
       {"", " -o json", " --output json", " --output=json", " -q", " --database-url postgresql://x:1/y?a=b",
        " --config migrate", " --config=migrate"}) {
    expected[path + options + " "] = names;
    expected[path + options + " xyzzy"] = {};
  }
  for (const auto& name : names) {
    expected[path + " " + name.substr(0, 2)] = beginning_with(name.substr(0, 2), names);
    expected[path + " --database-url " + name + " "] = names;
    expected[path + " --database-url=" + name + " "] = names;
  }
}

void expect_place(const cmd::CommandReference& program, const cmd::Place& place, Expectations& expected) {
  const auto& path = place.command->path;
  expect_commands(place, expected);
  if (!place.command->operands.empty()) expected[path + " "] = values_of(place.command->operands[0].value);
  const auto names = long_names(program, place);
  expected[path + " --"] = names;
  for (const auto& option : place.options) {
    expect_values(path, option, expected);
    const auto start = option.names.back().substr(0, 4);
    expected[path + " " + start] = beginning_with(start, names);
  }
}

Expectations expectations() {
  const auto program = cmd::read_reference();
  Expectations expected;
  for (const auto& place : cmd::places_of(program))
    expect_place(program, place, expected);
  // Every command accepts the program's own options; one place at each depth is enough.
  for (const std::string path : {"mailroom", "mailroom collect", "mailroom migrate down"}) {
    for (const auto& option : program.options)
      expect_values(path, option, expected);
  }
  return expected;
}

WordSet text_of(const std::string& line) {
  std::istringstream text(line);
  return {std::istream_iterator<std::string>(text), {}};
}

/// Completes with `script`, a path below share, in `shell`, and compares the result.
void check_completions(const std::string& shell, const std::string& driver, const std::string& script) {
  const auto expected = expectations();
  const TemporaryDirectory directory;
  directory.write("mailroom.yaml", "");
  directory.write("signing.key", "");
  std::filesystem::create_directory(directory.path() / "keys");
  const TemporaryDirectory lines;
  std::string text;
  for (const auto& [line, words] : expected)
    text += line + "\n";
  const auto input = lines.write("lines", text);
  const auto answer = run_shell(shell + " '" + source_directory + "/tests/reference/" + driver + "' '" +
                                    share_directory + "/" + script + "' < " + input,
                                directory);
  INFO(answer.err);
  INFO("a status of 127 means that the shell is missing: scripts/install-packages --tests");
  REQUIRE(answer.status == 0);
  CHECK(answer.err.empty());
  std::istringstream answers(answer.out);
  for (const auto& [line, words] : expected) {
    std::string offered = "no answer";
    std::getline(answers, offered);
    INFO("'" << line << "'");
    CHECK(text_of(offered) == words);
  }
  CHECK(answers.peek() == std::istringstream::traits_type::eof());
}

}  // namespace

TEST_CASE("bash offers what the command line accepts, and nothing for free text") {
  check_completions("bash --noprofile --norc", "complete.bash", "bash-completion/completions/mailroom");
}

TEST_CASE("zsh offers what the command line accepts, and nothing for free text") {
  check_completions("zsh -f", "complete.zsh", "zsh/site-functions/_mailroom");
}

TEST_CASE("fish offers what the command line accepts, and nothing for free text") {
  check_completions("fish --no-config", "complete.fish", "fish/vendor_completions.d/mailroom.fish");
}

TEST_CASE("the completions cover every kind of value") {
  // The tests above try only kinds that occur in a command line.
  const auto expected = expectations();
  CHECK(expected.at("mailroom --color ") == WordSet{"auto", "always", "never"});
  CHECK(expected.at("mailroom collect --format ") == WordSet{"csv", "jsonl"});
  CHECK(expected.at("mailroom collect --log-level ") == WordSet{"debug", "info", "warn", "error"});
  CHECK(expected.at("mailroom collect --key-file ") == files);
  CHECK(expected.at("mailroom -c ") == files);
  CHECK(expected.at("mailroom migrate ") ==
        WordSet{"up", "down", "goto", "status", "verify", "baseline", "force", "export"});
  CHECK(expected.at("mailroom collect --queue ").empty());
  CHECK(expected.at("mailroom verify ").empty());
  CHECK(expected.at("mailroom migrate down --").count("--reason") == 1);
}

}  // namespace mailroom::test::completion_test
