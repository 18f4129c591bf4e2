#include "cmd/reference/reference.hpp"
#include "cmd/syntax/arguments.hpp"
#include "support/catch.hpp"

namespace mailroom::test::option_value_test {
namespace {

/// Returns the error message for `words`, which must be a usage error.
std::string refusal(std::vector<std::string> words) {
  words.erase(words.begin());  // the program's own name
  try {
    cmd::parse_arguments(words);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    CHECK_FALSE(error.hint().empty());
    return error.what();
  }
  return "taken";
}

std::vector<std::string> text_of(const std::string& path) {
  std::vector<std::string> words;
  std::size_t start = 0;
  for (auto end = path.find(' '); end != std::string::npos; end = path.find(' ', start)) {
    words.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  words.push_back(path.substr(start));
  return words;
}

using Value = cmd::ValueReference::Kind;

}  // namespace

TEST_CASE("no option of any command accepts an empty value, as an unset variable would give it") {
  const auto program = cmd::read_reference();
  std::size_t seen = 0;
  for (const auto& place : cmd::places_of(program)) {
    // Global options come before it.
    if (place.command->path == "mailroom sendmail") continue;
    auto options = place.options;
    options.insert(options.end(), program.options.begin(), program.options.end());
    for (const auto& option : options) {
      if (option.value.kind == Value::none) continue;
      auto words = text_of(place.command->path);
      words.push_back(option.names.back());
      words.emplace_back();
      INFO(place.command->path << " " << option.names.back() << " ''");
      CHECK(refusal(words) == option.names.back() + " is empty");
      ++seen;
    }
  }
  CHECK(seen > 100);
}

TEST_CASE("no command accepts an empty operand") {
  const auto program = cmd::read_reference();
  std::size_t seen = 0;
  for (const auto& [command, options] : cmd::places_of(program)) {
    for (const auto& operand : command->operands) {
      auto words = text_of(command->path);
      words.emplace_back();
      INFO(command->path << " ''");
      CHECK(refusal(words) == operand.value.name + " is empty");
      ++seen;
    }
  }
  CHECK(seen >= 8);
}

}  // namespace mailroom::test::option_value_test
