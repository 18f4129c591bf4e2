// A stop while the first connection to the database is awaited: of a server that takes it and never answers.

#include <csignal>
#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/refusing_port.hpp"

namespace mailroom::test::stop_connecting_test {
namespace {

class SilentServer : public SilentPort {
 public:
  /// Waits for a client, and keeps it for the lifetime of the process.
  bool accepts() const { return accept4(socket(), nullptr, nullptr, SOCK_CLOEXEC) >= 0; }
  std::string conninfo() const {
    return fmt::format("host=127.0.0.1 port={} dbname=a user=a connect_timeout=0", port());
  }
};

}  // namespace

TEST_CASE("commands that run until they are stopped end while they wait for their first connection") {
  const auto number = GENERATE(SIGTERM, SIGINT);
  const std::vector<std::vector<std::string>> commands{
      {"collect"},
      {"collect", "--once"},
      {"collect", "--exec", "/bin/cat"},
      {"send", "--relay", "smtp://127.0.0.1:1", "--from", "a@app.example", "--link",
       "https://app.example/{token}"},
      {"tail", "--follow"},
      {"status", "--watch"}};
  for (auto words : commands) {
    INFO(fmt::format("{}", fmt::join(words, " ")));
    const SilentServer server;
    const TemporaryDirectory directory;
    words.insert(words.begin(), mailroom_binary);
    Subprocess process(words,
                       {{"MAILROOM_DATABASE_URL", server.conninfo()}, {"MAILROOM_SECRET_KEY", test_key}},
                       directory.path() / "stdout", directory.path() / "stderr");
    REQUIRE(server.accepts());
    process.signal(number);
    CHECK(process.wait() == 0);
    CHECK(read_file(directory.path() / "stderr").find("error") == std::string::npos);
  }
}

}  // namespace mailroom::test::stop_connecting_test
