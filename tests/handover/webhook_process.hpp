#pragma once

#include <csignal>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/build_paths.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test {

/// A running server of this directory that writes its port into a file.
class ServerProcess {
 public:
  /// Returns when it listens.
  explicit ServerProcess(const std::string& script, const std::string& mode,
                         const std::vector<std::string>& options = {})
      : command_{source_directory + "/tests/handover/" + script, directory_.path(), mode} {
    command_.insert(command_.end(), options.begin(), options.end());
    start();
  }
  void kill() {
    process_->signal(SIGKILL);
    process_->wait();
  }
  /// At the same port.
  void start_again() {
    const auto same = port();
    std::filesystem::remove(directory_.path() / "port");
    command_.insert(command_.end(), {"--port", same});
    start();
  }

  std::string port() const {
    auto text = read_file(directory_.path() / "port");
    return text.substr(0, text.find('\n'));
  }
  std::string url(const std::string& path = "/tokens") const { return "http://127.0.0.1:" + port() + path; }
  std::string taken() const { return directory_.path() / "taken"; }
  std::string errors() const { return read_file(directory_.path() / "stderr"); }

 private:
  void start() {
    process_ = std::make_unique<Subprocess>(command_, std::map<std::string, std::string>{},
                                            directory_.path() / "stdout", directory_.path() / "stderr");
    if (!eventually([this] { return !port().empty(); })) throw std::runtime_error("no server: " + errors());
  }

  TemporaryDirectory directory_;
  std::vector<std::string> command_;
  std::unique_ptr<Subprocess> process_;
};

/// A running webhook_server.py.
class WebhookProcess : public ServerProcess {
 public:
  explicit WebhookProcess(const std::string& mode, const std::vector<std::string>& options = {})
      : ServerProcess("webhook_server.py", mode, options) {}
};

}  // namespace mailroom::test
