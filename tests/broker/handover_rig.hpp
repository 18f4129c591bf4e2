#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "carriers/carriers.hpp"
#include "config/settings.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test {

/// An environment variable that scripts/with-nats or scripts/with-rabbitmq sets.
std::string from_script(const char* name);

/// The nodes of a cluster that one of these scripts has started.
class BrokerNodes {
 public:
  explicit BrokerNodes(std::string directory) : directory_(std::move(directory)) {}
  /// Ends what a test has done to the nodes.
  ~BrokerNodes() { restore(); }
  BrokerNodes(const BrokerNodes&) = delete;
  BrokerNodes& operator=(const BrokerNodes&) = delete;

  void kill(int node);  ///< with SIGKILL; returns when it is gone
  void stop(int node) const;
  void resume(int node) const;
  void start(int node);
  void restore();

 private:
  pid_t pid_of(int node) const;

  std::string directory_;
  std::vector<int> killed_;
};

/// A line with some tokens, and where it is.
struct TestLine {
  std::string message_id;
  std::string body;
  int submitted = 0;
  bool accepted = false;
  bool rejected = false;
  std::vector<delivery::Answer> answers{};
};

std::vector<TestLine> make_lines(int count, int tokens = 10, const std::string& prefix = "mailroom.1.");

delivery::Message parcel_of(const TestLine& line, std::int64_t id);

/// How many lines are handed over at the same time.
constexpr int lines_in_flight = 64;

/// How long a cluster may take for anything, beside whatever else the machine does.
constexpr std::chrono::seconds patience{300};

/// The answers that hand_over() has had, for a thread beside it.
struct Answered {
  std::atomic<int> accepted{0};
  std::atomic<int> waiting{0};  ///< neither accepted nor rejected: the line comes again

  /// Waits until more lines are accepted than were on their way.
  void await_more() const;
  /// Waits until another line is told to wait.
  void await_wait() const;
};

/// Hands the lines over, and each again 250 ms after an answer that is neither `accepted` nor `rejected`, as
/// a sink does, until none is left or `patience` is over.
void hand_over(delivery::Carrier& carrier, std::vector<TestLine>& lines, Answered* answered = nullptr);

/// The same, with a fault on another thread, which begins once some hundred lines were accepted.
void hand_over_beside(delivery::Carrier& carrier, std::vector<TestLine>& lines,
                      const std::function<void(const Answered&)>& fault);

/// Hands one line over once.
delivery::Answer hand_over_once(delivery::Carrier& carrier, const TestLine& line);

/// Runs `fault` on a thread as soon as `begins` is true.
class Fault {
 public:
  Fault(std::function<bool()> begins, std::function<void()> fault);
  /// Waits for its end. A fault that failed, or did not begin, fails the test.
  ~Fault();
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;

 private:
  std::string failure_;
  std::thread thread_;
};

/// The message and hint of the Error(configuration) that `start` throws.
std::string refusal_of(const std::function<void()>& start);
/// Writes a file named `ballast` into the directory, until its file system is full.
void fill_disk(const std::string& directory);

/// Each line is there once: `found` counts message ids.
void require_each_once(const std::vector<TestLine>& lines, const std::map<std::string, int>& found);
/// A broker that drops no repetitions may have a line twice if its carrier did not know what became of it.
void require_each_once_unless_unknown(const std::vector<TestLine>& lines,
                                      const std::map<std::string, int>& found);
/// Each line is there, whether or not it was repeated.
void require_each(const std::vector<TestLine>& lines, const std::map<std::string, int>& found);

void replace_all(std::string& text, const std::string& what, const std::string& by);
/// Those of `parts` that are not in `text`.
std::vector<std::string> lacking(const std::string& text, const std::vector<std::string>& parts);

}  // namespace mailroom::test
