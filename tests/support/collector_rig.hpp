#pragma once

#include <cstdio>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include "base/json.hpp"
#include "carriers/line_sink.hpp"
#include "consumer/collector.hpp"
#include "support/emitted_ids.hpp"
#include "support/fake_server.hpp"
#include "support/text_lines.hpp"
#include "support/two_open_sink.hpp"

namespace mailroom::test {

/// An unnamed file that a test writes to and reads back.
class CapturedOutput {
 public:
  CapturedOutput() : file_(std::tmpfile(), std::fclose) {
    if (!file_) throw std::runtime_error("cannot make a temporary file");
  }

  int fd() const { return fileno(file_.get()); }
  std::string text() const {
    std::string bytes(static_cast<std::size_t>(lseek(fd(), 0, SEEK_END)), '\0');
    if (pread(fd(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("cannot read the output");
    }
    return bytes;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

/// How the collector makes claims while a backlog lasts.
enum class Claiming {
  in_turn,
  with_two_open,        ///< the sink lets two batches be open
  ahead_with_two_open,  ///< while the rows of the batch before go to such a sink
  ahead_before,         ///< while the batch before is read; the claim takes effect before that
  ahead_after,          ///< or after
};

/// A real collector in virtual time, on a fake server.
class CollectorRig {
 public:
  FakeEnvironment environment;
  FakeServer server{environment};
  CapturedOutput file;
  Output output{file.fd()};
  std::ostringstream log_text;
  Log log{{.level = LogLevel::debug}, log_text};
  consumer::CollectorLimits limits;
  bool two_open = false;  ///< whether the sink lets two batches be open
  int room = 1'000'000;   ///< how many tokens such a sink takes in a batch
  consumer::Collector::Reload reload = [this] { return setup(); };

  void make_claims(Claiming claiming) {
    two_open = claiming == Claiming::with_two_open || claiming == Claiming::ahead_with_two_open;
    if (claiming == Claiming::ahead_with_two_open) server.claims_ahead = ClaimsAhead::after_a_row;
    if (claiming == Claiming::ahead_before) server.claims_ahead = ClaimsAhead::before_fetch;
    if (claiming == Claiming::ahead_after) server.claims_ahead = ClaimsAhead::after_fetch;
  }

  consumer::CollectorSetup setup(int limit = 3, const std::string& key = std::string(64, 'a')) {
    return {.connect = [this] { return server.connect(); },
            .session_identity = "here",
            .key = crypto::Key::from_hex(key, "the test"),
            .make_sink = [this] { return make_sink(); },
            .queues = {"mailroom"},
            .turns = {.batcher = {.batch_timeout = Milliseconds(5000),
                                  .poll_interval = Milliseconds(1000),
                                  .line_limit = limit}},
            .healthcheck_interval = Milliseconds(60'000)};
  }

  std::unique_ptr<consumer::Sink> make_sink() {
    if (two_open) return std::make_unique<TwoOpenSink>(output, room);
    return std::make_unique<carriers::LineSink>(compose::make_jsonl_encoder(), output);
  }

  void run() {
    consumer::Collector(
        setup(), limits, [this] { return reload(); }, environment, log)
        .run();
  }

  void stop_at(Milliseconds since_start) {
    environment.at(since_start, [this] { environment.request_stop(); });
  }

  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> all;
    for (const auto& line : lines_of(file.text())) {
      all.push_back(parse_json(line));
    }
    return all;
  }

  /// How often each token was emitted.
  std::map<std::int64_t, int> emitted() const {
    std::map<std::int64_t, int> times;
    for_each_emitted(file.text(), [&](std::int64_t id, std::string_view) { ++times[id]; });
    return times;
  }

  /// True if each of the server's tokens was emitted once.
  bool each_emitted_once() const {
    std::map<std::int64_t, int> once;
    for (std::int64_t id = 1; id <= server.last_token(); ++id) {
      once[id] = 1;
    }
    return emitted() == once;
  }

  bool logged(const std::string& text) const { return log_text.str().find(text) != std::string::npos; }
};

}  // namespace mailroom::test
