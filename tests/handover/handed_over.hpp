#pragma once

#include <chrono>
#include <map>
#include <poll.h>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "delivery/carrier.hpp"
#include "support/build_paths.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test {

/// A line that the receiver has logged.
struct TakenLine {
  std::string message_id;
  int attempt = 0;
  std::vector<std::int64_t> tokens;
};

/// The lines of the log of child.py or webhook_server.py, in their order.
inline std::vector<TakenLine> taken_lines(const std::string& path) {
  std::vector<TakenLine> lines;
  std::istringstream log(read_file(path));
  for (std::string text; std::getline(log, text);) {
    std::istringstream words(text);
    TakenLine line;
    if (!(words >> line.message_id >> line.attempt)) continue;
    for (std::int64_t token = 0; words >> token;)
      line.tokens.push_back(token);
    lines.push_back(line);
  }
  return lines;
}

/// How often each token was taken. With `by_message` a line that was taken again with the same message id
/// counts once, as for a receiver that recognises it.
inline std::map<std::int64_t, int> taken_tokens(const std::string& path, bool by_message = false) {
  std::map<std::int64_t, int> counts;
  std::set<std::string> seen;
  for (const auto& line : taken_lines(path)) {
    if (by_message && !seen.insert(line.message_id).second) continue;
    for (const auto token : line.tokens)
      ++counts[token];
  }
  return counts;
}

inline std::string child_command(const std::string& log, const std::string& mode) {
  return "python3 " + source_directory + "/tests/handover/child.py " + log + " " + mode;
}

/// The answers of `carrier` until it has none left to give, in the order in which they came.
inline std::vector<delivery::Answer> answers_of(delivery::Carrier& carrier,
                                                std::chrono::seconds patience = std::chrono::seconds(30)) {
  std::vector<delivery::Answer> answers;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (carrier.unfinished() > 0 && std::chrono::steady_clock::now() < end) {
    pollfd fd{carrier.fd(), POLLIN, 0};
    poll(&fd, 1, 100);
    for (auto& answer : carrier.take())
      answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace mailroom::test
