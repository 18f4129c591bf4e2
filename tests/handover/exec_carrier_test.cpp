// The program that lines are handed over to, without a database: what each misbehaviour makes of its lines.

#include <csignal>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "carriers/exec/carrier.hpp"
#include "handed_over.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::exec_carrier_test {

using namespace std::chrono_literals;

namespace {

struct ExecRig {
  TemporaryDirectory directory;
  std::string taken = directory.path() / "taken";
  std::ostringstream text;
  Log log{{.level = LogLevel::debug}, text};
  std::vector<std::string> bodies;
  std::unique_ptr<exec::ExecCarrier> carrier;
  std::int64_t next = 1;

  explicit ExecRig(const std::string& mode, Milliseconds timeout = 20s) {
    std::signal(SIGPIPE, SIG_IGN);
    start({"/usr/bin/python3", source_directory + "/tests/handover/child.py", taken, mode}, timeout);
    bodies.reserve(10'000);
  }
  void start(std::vector<std::string> words, Milliseconds timeout) {
    carrier = std::make_unique<exec::ExecCarrier>(
        exec::ExecCarrier::Options{
            .words = std::move(words), .ack_on = config::AckOn::descriptor_3, .timeout = timeout},
        log);
  }
  void submit(int lines, std::size_t padding = 0) {
    for (int i = 0; i < lines; ++i, ++next) {
      const auto id = std::to_string(next);
      bodies.push_back(R"({"tokens":[{"id":)" + id + R"(}],"padding":")" + std::string(padding, 'x') + "\"}");
      delivery::Message message;
      message.id = next;
      message.attempt = 1;
      message.tokens = {next};
      message.message_id = "test." + id + ".1.00";
      message.body = bodies.back();
      carrier->submit(std::move(message));
    }
  }
  int starts() const {
    const auto log_text = read_file(taken);
    int count = 0;
    for (auto at = log_text.find("start\n"); at != std::string::npos; at = log_text.find("start\n", at + 1))
      ++count;
    return count;
  }
};

std::map<delivery::Verdict, int> counts_of(const std::vector<delivery::Answer>& answers) {
  std::map<delivery::Verdict, int> counts;
  for (const auto& answer : answers)
    ++counts[answer.verdict];
  return counts;
}

using Counts = std::map<delivery::Verdict, int>;

}  // namespace

TEST_CASE("a program takes many lines at the same time, and each is answered once") {
  ExecRig rig("ok");
  rig.submit(500, 1000);
  const auto answers = answers_of(*rig.carrier);
  CHECK(counts_of(answers) == Counts{{delivery::Verdict::accepted, 500}});
  CHECK(taken_tokens(rig.taken).size() == 500);
  CHECK(rig.starts() == 1);
  CHECK(answers.front().reply == "taken");
  CHECK(answers.front().sink.starts_with("/usr/bin/python3@"));
  CHECK(rig.text.str().empty());
}

TEST_CASE("a program that dies has its unread lines given to the next one, and only read ones are unknown") {
  ExecRig rig("die-after-read");
  // Longer than what a reader buffers at a time, so that lines are left in the pipe and before it.
  rig.submit(40, 20'000);
  const auto answers = answers_of(*rig.carrier);
  const auto counts = counts_of(answers);
  CHECK(answers.size() == 40);
  CHECK(counts.count(delivery::Verdict::unavailable) == 0);
  CHECK(counts.at(delivery::Verdict::unknown) >= 1);
  CHECK(counts.at(delivery::Verdict::accepted) >= 30);
  const auto taken = taken_tokens(rig.taken);
  for (const auto& answer : answers)
    CHECK(taken.count(answer.id) == (answer.verdict == delivery::Verdict::accepted ? 1U : 0U));
  CHECK(rig.starts() == 2);
  CHECK(rig.text.str().find("exited with status 1") != std::string::npos);
}

TEST_CASE("a line that a program took before it died is unknown, not unavailable") {
  ExecRig rig("die-after-take");
  rig.submit(10);
  for (const auto& answer : answers_of(*rig.carrier)) {
    if (answer.id == 3) CHECK(answer.verdict == delivery::Verdict::unknown);
    CHECK(answer.verdict != delivery::Verdict::unavailable);
  }
  CHECK(taken_tokens(rig.taken).count(3) == 1);
}

TEST_CASE(
    "a program that ends before it reads leaves its lines unavailable, and is started again with a pause") {
  ExecRig rig("exit-at-start");
  rig.submit(5);
  const auto answers = answers_of(*rig.carrier);
  CHECK(counts_of(answers) == Counts{{delivery::Verdict::unavailable, 5}});
  CHECK(answers.front().reply == "the program exited with status 3");
  for (int i = 0; i < 50; ++i) {
    rig.submit(1);
    answers_of(*rig.carrier);
  }
  CHECK(rig.starts() <= 3);
}

TEST_CASE("a program that does not answer in time is killed") {
  for (const std::string mode : {"hang", "never-reads"}) {
    INFO(mode);
    ExecRig rig(mode, 1s);
    // On a busy machine it takes a while until it can read.
    CHECK(eventually([&] { return rig.starts() == 1; }));
    rig.submit(20, 10'000);
    const auto answers = answers_of(*rig.carrier);
    CHECK(answers.size() == 20);
    const auto counts = counts_of(answers);
    CHECK(counts.count(delivery::Verdict::accepted) == 0);
    // Only what was read may have been taken.
    CHECK(counts.count(delivery::Verdict::unknown) == (mode == "hang" ? 1U : 0U));
    CHECK(answers.front().reply == "the program did not answer within 1s, and was killed");
  }
}

TEST_CASE("answers that nobody asked for change nothing") {
  for (const std::string mode : {"twice", "stranger"}) {
    INFO(mode);
    ExecRig rig(mode);
    rig.submit(200);
    CHECK(counts_of(answers_of(*rig.carrier)) == Counts{{delivery::Verdict::accepted, 200}});
    CHECK(rig.starts() == 1);
    CHECK(rig.text.str().find("answered what it was not asked") != std::string::npos);
  }
}

TEST_CASE("a program that floods its answers is ended, and its lines were not taken") {
  for (const std::string mode : {"flood", "endless-line"}) {
    INFO(mode);
    ExecRig rig(mode);
    rig.submit(20);
    const auto answers = answers_of(*rig.carrier);
    CHECK(answers.size() == 20);
    CHECK(counts_of(answers).count(delivery::Verdict::accepted) == 0);
    CHECK(taken_tokens(rig.taken).empty());
  }
}

TEST_CASE("a program that closes its answers is started again") {
  ExecRig rig("close");
  rig.submit(50, 20'000);
  const auto answers = answers_of(*rig.carrier);
  CHECK(answers.size() == 50);
  CHECK(counts_of(answers).count(delivery::Verdict::unavailable) == 0);
  CHECK(rig.starts() == 2);
}

TEST_CASE("a program that closes its stdin is started again when it has answered what it has read") {
  ExecRig rig("deaf");
  // More than a pipe holds.
  rig.submit(50, 20'000);
  const auto answers = answers_of(*rig.carrier);
  CHECK(answers.size() == 50);
  CHECK(counts_of(answers).count(delivery::Verdict::unavailable) == 0);
  CHECK(rig.starts() == 2);
}

TEST_CASE("a program that exits after each line is started again at once") {
  ExecRig rig("one-by-one");
  rig.submit(10, 70'000);
  const auto answers = answers_of(*rig.carrier);
  CHECK(answers.size() == 10);
  CHECK(counts_of(answers).count(delivery::Verdict::unavailable) == 0);
  const auto taken = taken_tokens(rig.taken);
  for (const auto& answer : answers)
    if (answer.verdict == delivery::Verdict::accepted) CHECK(taken.count(answer.id) == 1);
}

TEST_CASE("cancel answers what is left: unknown if it was read, otherwise unavailable") {
  ExecRig rig("never-reads");
  rig.submit(5);
  rig.carrier->cancel();
  CHECK(counts_of(answers_of(*rig.carrier)) == Counts{{delivery::Verdict::unavailable, 5}});
}

TEST_CASE("a program has neither our secrets nor our descriptors") {
  ExecRig rig("ok");
  setenv("MAILROOM_SECRET_KEY", "secret", 1);
  setenv("PGPASSWORD", "secret", 1);
  constexpr int ours = 77;
  dup2(STDERR_FILENO, ours);
  const auto seen = (rig.directory.path() / "seen").string();
  rig.start({"sh", "-c", "env > " + seen + "; ls /proc/self/fd >> " + seen + "; cat > /dev/null"}, 20s);
  rig.carrier.reset();
  close(ours);
  unsetenv("MAILROOM_SECRET_KEY");
  unsetenv("PGPASSWORD");
  const auto text = read_file(seen);
  CHECK(text.find("PATH=") != std::string::npos);
  CHECK(text.find("secret") == std::string::npos);
  CHECK(text.find("\n3\n") != std::string::npos);
  CHECK(text.find("\n77\n") == std::string::npos);
}

TEST_CASE("a program that cannot be started is an error of the configuration") {
  ExecRig rig("ok");
  CHECK_THROWS_WITH(rig.start({"/nonexistent/sender"}, 1s),
                    "cannot start /nonexistent/sender: No such file or directory");
}

}  // namespace mailroom::test::exec_carrier_test
