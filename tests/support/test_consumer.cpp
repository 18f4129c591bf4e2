#include "support/test_consumer.hpp"

#include <csignal>

#include "support/build_paths.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test {
namespace {

std::vector<std::string> mailroom(const std::vector<std::string>& words) {
  std::vector<std::string> command{mailroom_binary};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

std::map<std::string, std::string> with_defaults(const std::string& conninfo,
                                                 std::map<std::string, std::string> environment) {
  environment.emplace("MAILROOM_DATABASE_URL", conninfo);
  environment.emplace("MAILROOM_SECRET_KEY", test_key);
  return environment;
}

}  // namespace

const char* const test_key = "cafebabecafebabecafebabecafebabecafebabecafebabecafebabecafebabe";

TestConsumer::TestConsumer(const std::vector<std::string>& words, const std::string& conninfo,
                           std::map<std::string, std::string> environment, const std::string& stdout_path)
    : process_(mailroom(words), with_defaults(conninfo, std::move(environment)),
               stdout_path.empty() ? output_path() : stdout_path, directory_.path() / "stderr") {}

int TestConsumer::stop() {
  process_.await_handler(SIGTERM);
  process_.signal(SIGTERM);
  return process_.wait();
}

std::vector<std::string> TestConsumer::lines() const {
  return lines_of(output());
}

bool TestConsumer::connected(int times) const {
  return eventually([&] { return count(log(), " connected\n") >= times; });
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

}  // namespace mailroom::test
