// The program that sink.exec names: its words without a shell, and where it is.

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "carriers/exec/carrier.hpp"

namespace mailroom::exec {
namespace {

std::vector<std::string> program_of(const config::Settings& settings) {
  auto words = command_words(settings.sink.exec);
  if (!words || words->empty()) {
    throw Error(ExitCode::configuration,
                words ? "sink.exec names no program" : "sink.exec has a quote or a backslash without its end",
                "quote as in a shell, for example --exec 'python3 \"my sender.py\"'");
  }
  return *std::move(words);
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

/// Moves the word at the front of `rest` to `word`, without its quotes. False if it does not end.
bool take_word(std::string_view& rest, std::string& word) {
  char quote = '\0';
  for (; !rest.empty() && (quote != '\0' || !is_blank(rest.front())); rest.remove_prefix(1)) {
    const char c = rest.front();
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && quote != '\'') {
      rest.remove_prefix(1);
      if (rest.empty()) return false;
      // Within double quotes a backslash quotes only what is special there.
      if (quote == '"' && rest.front() != '"' && rest.front() != '\\') word += c;
      word += rest.front();
    } else {
      word += c;
    }
  }
  return quote == '\0';
}

}  // namespace

std::unique_ptr<delivery::Carrier> make_exec_carrier(const carriers::CarrierSetup& setup) {
  return std::make_unique<ExecCarrier>(ExecCarrier::Options{.words = program_of(setup.settings),
                                                            .ack_on = setup.settings.sink.ack_on,
                                                            .timeout = setup.settings.sink.timeout},
                                       setup.log);
}

std::vector<carriers::SinkFinding> check_exec(const config::Settings& settings) {
  const auto program = program_of(settings).front();
  std::vector<std::string> places{program};
  if (program.find('/') == std::string::npos) {
    places.clear();
    const char* path = std::getenv("PATH");
    for (const auto directory : split(path == nullptr ? "/bin:/usr/bin" : path, ':'))
      places.push_back(fmt::format("{}/{}", directory, program));
  }
  for (const auto& place : places) {
    std::error_code unreadable;
    if (access(place.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(place, unreadable))
      return {{carriers::SinkFinding::Level::fine, fmt::format("{} can be started", shown_text(place))}};
  }
  return {{carriers::SinkFinding::Level::failure, fmt::format("{} cannot be started", shown_text(program)),
           "sink.exec names a program, by its path or found in PATH, that this user may execute"}};
}

std::optional<std::vector<std::string>> command_words(std::string_view command) {
  std::vector<std::string> words;
  for (;;) {
    while (!command.empty() && is_blank(command.front()))
      command.remove_prefix(1);
    if (command.empty()) return words;
    if (!take_word(command, words.emplace_back())) return std::nullopt;
  }
}

extern const carriers::CarrierFunctions exec_carrier;
const carriers::CarrierFunctions exec_carrier{make_exec_carrier, check_exec};

}  // namespace mailroom::exec
